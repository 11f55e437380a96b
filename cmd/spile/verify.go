package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
)

func newVerify(e *env) *cobra.Command {
	var in sourceFlags
	var out verifyFlags
	cmd := &cobra.Command{
		Use:   "verify FILE... [flags]",
		Short: "Check files, a line for each finding",
		Long: `Verify checks the structure of files: the header and the whole table of contents, or, in a file that has none, every
value. With --deep it decodes the payload as well and compares it with the table of contents entry by entry. It prints
a line for each finding: file, document path, what is wrong, byte offset. It goes on behind a bad file.

Of a table it checks the header, the descriptors and the MAC, and with --deep every column. With --schema it says where
the file is not what the schema takes, and which numbers of an enumeration have no label.

The exit status is 0 when there is no finding. When a budget is spent, it is 1, and a line says for how many files it was not
enough. What is odd and yet no fault, such as a binary that looks like a Python
pickle, is a line on standard error.

Of a series artifact it checks the manifest, the frames and the pages of all parts, with --deep every column, too; a
finding has its class and the number of its check in docs/format/series.md. A folder stands for all artifacts below it. A
column that no known codec reads is told, and the exit status is 3 when there is nothing worse.`,
		Example:           `  echo '{"runs":[1,2,3]}' | spile pack - -o run.msg && spile verify --deep run.msg`,
		Args:              arguments(1, -1),
		ValidArgsFunction: completeFiles(-1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.verify(cmd.Context(), args, &in, &out)
		},
	}
	in.add(cmd.Flags())
	in.addTables(cmd.Flags())
	in.addArtifacts()
	in.artifacts.closed = true
	out.add(cmd.Flags())
	cmd.Flags().BoolVar(&out.deep, "deep", false, "decode everything and compare it with the table of contents")
	return cmd
}

// verifyFlags are the flags of verify alone.
type verifyFlags struct {
	tableFlags
	deep bool
}

// verifyReport is what verify says of a file.
type verifyReport struct {
	File     string    `json:"file"`
	Findings []finding `json:"findings"`
	Error    string    `json:"error,omitempty"` // why the file could not be read to its end
	count    int
}

type finding struct {
	Object string `json:"object,omitempty"` // of an artifact, the file of it
	Where  string `json:"where,omitempty"`
	Offset *int64 `json:"offset,omitempty"`
	Class  string `json:"class"`
	Check  int    `json:"check,omitempty"` // of an artifact, the number of the check
	Msg    string `json:"msg"`
}

func (f finding) line(file string) string {
	parts := []string{fault.OneLine(cmp.Or(f.Object, file))}
	if f.Where != "" {
		parts = append(parts, fault.OneLine(f.Where))
	}
	if f.Check > 0 {
		parts = append(parts, fmt.Sprintf("%s, check %d", f.Class, f.Check))
	}
	line := strings.Join(append(parts, f.Msg), ": ")
	if f.Offset != nil {
		line += fmt.Sprintf(" (offset %#x)", *f.Offset)
	}
	return line
}

func (e *env) verify(ctx context.Context, files []string, in *sourceFlags, out *verifyFlags) error {
	if err := in.check(); err != nil {
		return err
	}
	e.noteParts(files)
	files, err := e.verified(ctx, files)
	if err == nil {
		files, err = e.expanded(ctx, files)
	}
	if err != nil {
		return err
	}
	total := verifyTotal{reports: make([]verifyReport, 0, len(files))}
	one := func(e *env, file string) (*verifyReport, error) {
		r := &verifyReport{File: shown(file), Findings: []finding{}}
		err := e.verifyFile(ctx, file, in, out, func(f finding) {
			if !out.asJSON() {
				fmt.Fprintln(e.out, f.line(r.File))
				return
			}
			r.Findings = append(r.Findings, f)
		}, &r.count)
		return r, err
	}
	if len(files) > 1 && !slices.Contains(files, "-") {
		err = e.verifySideBySide(ctx, files, one, &total)
	} else {
		for _, file := range files {
			r, bad := one(e, file)
			if err = e.verifyDone(ctx, r, bad, &total); err != nil {
				break
			}
		}
	}
	if err != nil {
		return err
	}
	if total.unread > 0 && len(files) > 1 {
		e.say("%d of %d files were not checked to their end: the budget is spent", total.unread, len(files))
	}
	if out.asJSON() {
		if err := e.printJSON(total.reports, &out.tableFlags); err != nil {
			return err
		}
	}
	if err := e.out.Flush(); err != nil {
		return err
	}
	switch {
	case total.failed != nil:
		return silent{total.failed}
	case total.findings > 0:
		return silent{fault.Corrupt}
	}
	return nil
}

// verifyTotal is what verify says of all files.
type verifyTotal struct {
	reports  []verifyReport
	findings int
	unread   int   // files that the budget was not enough for
	failed   error // the gravest of the errors that are no findings
}

// verifySideBySide checks some files at a time, and tells of them in the order of the list.
func (e *env) verifySideBySide(ctx context.Context, files []string, one func(e *env, file string) (*verifyReport, error), total *verifyTotal) error {
	defer e.progress(ctx, "verify")()
	names := func(yield func(string, error) bool) {
		for _, file := range files {
			if !yield(file, nil) {
				return
			}
		}
	}
	var mu sync.Mutex
	reports := make(map[*env]*verifyReport)
	return e.sideBySide(ctx, names, func(f *env, file string) error {
		r, err := one(f, file)
		mu.Lock()
		defer mu.Unlock()
		reports[f] = r
		if flushed := f.out.Flush(); err == nil {
			err = flushed
		}
		return err
	}, func(r *oneOf) error {
		mu.Lock()
		report := reports[r.env]
		delete(reports, r.env)
		mu.Unlock()
		lines, err := r.out.Reader()
		if err == nil {
			_, err = io.Copy(e.out, lines)
		}
		if err != nil {
			return err
		}
		return e.verifyDone(ctx, report, r.err, total)
	})
}

// verifyDone takes over what was found in a file, and why it could not be read to its end.
func (e *env) verifyDone(ctx context.Context, r *verifyReport, err error, total *verifyTotal) error {
	if ctx.Err() != nil {
		return cmp.Or(err, ctx.Err())
	}
	total.findings += r.count
	if err != nil {
		r.Error = message(err)
		if err := e.out.Flush(); err != nil { // the findings before it come first
			return err
		}
		spent := isSpent(err)
		if spent {
			total.unread++
		}
		if !spent || total.unread == 1 { // it is the same for all of them
			e.say("%s", e.hinted(err))
		}
		if total.failed == nil || errors.Is(err, fault.Changed) {
			total.failed = err
		}
	}
	total.reports = append(total.reports, *r)
	return nil
}

// verifyFile reports the findings of one file. The error is of the source or the command line, not of the data.
func (e *env) verifyFile(ctx context.Context, file string, in *sourceFlags, out *verifyFlags, report func(finding), findings *int) error {
	found := func(f *fault.Error) {
		*findings++
		report(newFinding(f))
	}
	d, err := e.open(ctx, file, in)
	if err != nil {
		for _, one := range apart(err) {
			f, ok := dataFault(one)
			if !ok {
				return err
			}
			found(f)
		}
		return nil
	}
	defer d.Close()
	defer e.progress(ctx, "verify")()
	if d.artifact != nil {
		return e.artifactVerify(ctx, d.artifact, out.deep, findings, report)
	}
	if d.table != nil {
		return named(e.tableVerify(ctx, d.table, out.deep, found), shown(file))
	}
	// A file without a table of contents has nothing to check but its values.
	deep := out.deep || d.Info().TOCSize == 0
	file = shown(file)
	return named(d.Verify(ctx, &msglc.VerifyOptions{Deep: deep}, func(f msglc.Finding) {
		if f.Note {
			e.say("%s: note: %s", file, newFinding(f.Err).line(file))
			return
		}
		found(f.Err)
	}), file)
}

// dataFault returns the fault in the data that err is.
func dataFault(err error) (*fault.Error, bool) {
	var f *fault.Error
	if !errors.As(err, &f) {
		return nil, false
	}
	for _, class := range []error{fault.Corrupt, fault.UnsupportedVersion, fault.UnsupportedCodec, fault.Conflict} {
		if errors.Is(err, class) {
			return f, true
		}
	}
	return nil, false
}

func newFinding(f *fault.Error) finding {
	bare := *f
	bare.Package, bare.Object, bare.Where, bare.Offset = "", "", "", fault.NoOffset
	out := finding{Where: f.Where, Msg: bare.Error()}
	if f.Class != nil {
		out.Class = f.Class.Error()
	}
	if f.Offset >= 0 {
		out.Offset = &f.Offset
	}
	return out
}
