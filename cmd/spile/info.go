package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/fault"
)

func newInfo(e *env) *cobra.Command {
	var in sourceFlags
	var out tableFlags
	cmd := &cobra.Command{
		Use:   "info FILE [flags]",
		Short: "Print what a file is: format, codec, layout, counts",
		Long: `Info prints the format of a file, its codec and magic, where payload and table of contents lie, and what the root
value is. It reads the beginning of the file and of the table of contents. Of a table it prints rows and columns, and whether
it is encrypted and signed; with the MAC key it checks the MAC. Of a series artifact, named by its folder or its manifest, it
prints region, generation, parts, series, tags and bucket, from the manifest alone.

` + manyHelp + "\n\n" + folderHelp + eachHelp,
		Example:           `  echo '{"runs":[1,2,3]}' | spile pack - -o run.msg && spile info run.msg`,
		Args:              arguments(1, 1),
		ValidArgsFunction: completeFiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.forEach(cmd.Context(), args[0], &in, out.printed(), func(e *env, file string) error {
				return e.info(cmd.Context(), file, &in, &out)
			})
		},
	}
	in.add(cmd.Flags())
	in.addTables(cmd.Flags())
	in.addArtifacts()
	in.addStrict(cmd.Flags())
	in.tables.keyless = true
	out.add(cmd.Flags())
	return cmd
}

// infoReport is what info prints. Offsets are offsets in the file.
type infoReport struct {
	File    string   `json:"file"`
	Format  string   `json:"format"`
	Version string   `json:"version,omitempty"`
	Size    int64    `json:"size"`
	Codec   string   `json:"codec"`
	Magic   *string  `json:"magic,omitempty"`
	Offset  int64    `json:"offset"`
	Payload section  `json:"payload"`
	TOC     *section `json:"toc,omitempty"`
	Form    string   `json:"form,omitempty"`
	Kind    string   `json:"kind"`
	Length  *int64   `json:"length,omitempty"`
	Sidecar string   `json:"sidecar,omitempty"`
}

type section struct {
	Offset int64  `json:"offset"`
	Size   int64  `json:"size"`
	File   string `json:"file,omitempty"` // where it is, when that is not the file itself
}

func (e *env) info(ctx context.Context, file string, in *sourceFlags, out *tableFlags) error {
	d, err := e.open(ctx, file, in)
	if err != nil {
		return err
	}
	defer d.Close()
	if d.table != nil {
		return e.tableInfo(d.table, out)
	}
	if d.artifact != nil {
		return e.artifactInfo(ctx, d, out)
	}
	if err := in.tables.unused(d); err != nil {
		return err
	}
	r, err := d.report(ctx, int64(in.offset))
	if err != nil {
		return named(err, d.name)
	}
	if out.asJSON() {
		return e.printJSON(r, out)
	}
	row := func(name, format string, args ...any) {
		fmt.Fprintf(e.out, "%-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("file", "%s", fault.OneLine(r.File))
	row("format", "%s", r.Format)
	if r.Magic != nil {
		row("version", "%s", r.Version)
		row("magic", "%s", fault.OneLine(*r.Magic))
	}
	row("size", "%d", r.Size)
	row("codec", "%s", r.Codec)
	row("payload", "%d bytes at %d", r.Payload.Size, r.Payload.Offset)
	if r.TOC != nil {
		whose := ""
		if r.Sidecar != "" {
			whose = " of the sidecar"
		}
		row("toc", "%d bytes at %d%s", r.TOC.Size, r.TOC.Offset, whose)
	}
	if r.Sidecar != "" {
		row("sidecar", "%s", fault.OneLine(r.Sidecar))
	}
	if r.Form != "" {
		row("form", "%s", r.Form)
	}
	if r.Length != nil {
		row("root", "%s of %d", r.Kind, *r.Length)
	} else {
		row("root", "%s", r.Kind)
	}
	return nil
}

func (d *document) report(ctx context.Context, offset int64) (*infoReport, error) {
	in := d.Info()
	r := &infoReport{
		File: d.name, Format: d.format.String(), Size: d.size, Codec: in.Codec.String(), Offset: offset,
		Payload: section{Offset: in.PayloadStart, Size: in.PayloadSize}, Form: in.Form.String(), Sidecar: in.Sidecar,
	}
	if d.format == formatJSON { // what was read is a temporary document
		r.Codec, r.Payload, r.Form = "json", section{Offset: offset, Size: d.size - offset}, ""
	} else if in.TOCSize > 0 {
		r.TOC = &section{Offset: in.TOCStart, Size: in.TOCSize, File: in.Sidecar}
	}
	if in.Magic != nil && d.format == formatMsglc {
		magic := string(in.Magic)
		r.Magic = &magic
		r.Version = "2024-03-12" // the release that made the layout; the format has no version field
	}
	root := d.Root()
	kind, err := root.Kind(ctx)
	if err != nil {
		return nil, err
	}
	r.Kind = kind.String()
	n, err := root.Len(ctx)
	switch {
	case err == nil:
		r.Length = &n
	case !errors.Is(err, fault.Invalid): // a scalar has none
		return nil, err
	}
	return r, nil
}
