package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
)

func newDu(e *env) *cobra.Command {
	var in sourceFlags
	var out tableFlags
	levels := 1
	cmd := &cobra.Command{
		Use:   "du FILE [PATH] [flags]",
		Short: "Show where the bytes are, largest first",
		Long: `Du shows how many bytes of the file the values below PATH, or below the root, take, largest first. It reads the
part of the table of contents that leads to PATH and what is below it there, and no payload: the time grows with the
table, not with the payload. Values without an entry of their own are counted in the value around them. Of a JSON file
the bytes are those of its CBOR form.

The line (other) is what belongs to none of the values listed: the heads of lists and maps, keys, values without an
entry, the header of the file. Of a table the bytes are those of its columns. A sidecar is a file of its own: its line is
not in the total.

Of a series artifact, a part, a leaf or a block it shows the bytes by what is below and then, once more, by column.

` + manyHelp + "\n\n" + folderHelp + eachHelp,
		Example:           `  seq 100000 | paste -sd, | sed 's/.*/{"runs":[&],"seed":42}/' | spile pack - -o run.msg && spile du run.msg`,
		Args:              arguments(1, 2),
		ValidArgsFunction: completePath(e, &in),
		RunE: func(cmd *cobra.Command, args []string) error {
			if levels < 1 {
				return usagef("--levels %d, want 1 or more", levels)
			}
			return e.forEach(cmd.Context(), args[0], &in, out.printed(), func(e *env, file string) error {
				return e.du(cmd.Context(), with(file, args), levels, &in, &out)
			})
		},
	}
	in.add(cmd.Flags())
	in.addTables(cmd.Flags())
	in.addArtifacts()
	in.addStrict(cmd.Flags())
	out.add(cmd.Flags())
	cmd.Flags().IntVar(&levels, "levels", 1, "show `N` levels below PATH")
	return cmd
}

// duRow is a value and its bytes.
type duRow struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

// duReport is what du prints. Total is Other and the bytes of the children of PATH together, and of a whole document
// its table of contents too.
type duReport struct {
	Path     string  `json:"path"`
	Total    int64   `json:"total"`
	Children []duRow `json:"children"` // and what is below them, in the same order
	TOC      int64   `json:"toc,omitempty"`
	Other    int64   `json:"other"` // keys, heads, values without an entry of their own

	// Of a file that is read by a sidecar: its name, and the table of contents in it, which is not in Total.
	Sidecar    string `json:"sidecar,omitempty"`
	SidecarTOC int64  `json:"sidecar_toc,omitempty"`
}

func (e *env) du(ctx context.Context, args []string, levels int, in *sourceFlags, out *tableFlags) error {
	path, d, n, err := e.node(ctx, args, in)
	if err != nil {
		return err
	}
	defer d.Close()
	if d.table != nil {
		return e.tableDu(ctx, d.table, textOf(args), out)
	}
	if d.artifact != nil {
		return e.artifactDu(ctx, d.artifact, textOf(args), levels, out)
	}
	r, err := d.usage(ctx, n, path, levels)
	if err != nil {
		return named(err, d.name)
	}
	if out.asJSON() {
		return e.printJSON(r, out)
	}
	row := func(bytes int64, text string) {
		fmt.Fprintf(e.out, "%14d %6s  %s\n", bytes, share(bytes, r.Total), text)
	}
	for _, c := range r.Children {
		row(c.Bytes, c.Path)
	}
	if r.TOC > 0 {
		row(r.TOC, "(table of contents)")
	}
	row(r.Other, "(other)")
	row(r.Total, "total")
	if r.Sidecar != "" {
		fmt.Fprintf(e.out, "%14d %6s  (table of contents, in %s)\n", r.SidecarTOC, "-", fault.OneLine(r.Sidecar))
	}
	return nil
}

func (d *document) usage(ctx context.Context, n msglc.Node, path msglc.Path, levels int) (*duReport, error) {
	r := &duReport{Path: pathText(path), Children: []duRow{}}
	var err error
	if r.Total, err = n.Size(ctx); err != nil {
		return nil, err
	}
	switch in := d.Info(); {
	case len(path) > 0:
	case d.format == formatMsglc:
		r.TOC = in.TOCSize
		r.Total = msglc.PrefixSize + in.PayloadSize + in.TOCSize
	case in.Sidecar != "":
		r.Sidecar, r.SidecarTOC = in.Sidecar, in.TOCSize
	}
	a, err := n.Archive(ctx)
	if err != nil {
		return nil, err
	}
	w := duWalk{r, ctx, d.size}
	children, err := w.add(n, a, path, levels)
	if err != nil {
		return nil, err
	}
	r.Other = r.Total - r.TOC - children
	slices.SortStableFunc(r.Children, func(a, b duRow) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return r, nil
}

// duWalk collects the rows of a report.
type duWalk struct {
	*duReport
	ctx  context.Context
	left int64 // bytes of the file in archives that were not entered yet
}

// add collects the children, in the archive that is given, that have entries in the table of contents, and theirs. It
// returns the bytes of the children.
func (w *duWalk) add(n msglc.Node, in *msglc.Reader, path msglc.Path, levels int) (total int64, err error) {
	switch n.Form() {
	case msglc.List, msglc.Map, msglc.Combined:
	default:
		return 0, nil
	}
	for child, err := range n.Children(w.ctx) {
		if err != nil {
			return 0, err
		}
		at := append(slices.Clip(path), child.Step())
		size, err := child.Node.Size(w.ctx)
		if err != nil {
			return 0, err
		}
		total += size
		w.Children = append(w.Children, duRow{pathText(at), size})
		if levels > 1 {
			node, err := child.Node.Find(w.ctx, nil) // the root of a child archive
			if err != nil {
				return 0, err
			}
			a, err := node.Archive(w.ctx)
			if err == nil && a != in {
				err = w.enter(a, at)
			}
			if err != nil {
				return 0, err
			}
			if _, err := w.add(node, a, at, levels-1); err != nil {
				return 0, err
			}
		}
	}
	return total, nil
}

// enter takes what belongs to an archive, and to no archive in it, from the bytes of the file that are left.
func (w *duWalk) enter(a *msglc.Reader, path msglc.Path) error {
	in := a.Info()
	size := msglc.PrefixSize + in.TOCSize
	if isOneValue(a.Root()) {
		size += in.PayloadSize
	}
	return takeBytes(&w.left, size, in.Start, path)
}

func share(part, whole int64) string {
	if whole <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}
