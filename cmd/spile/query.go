package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/adapters/jq"
	"github.com/spilehq/spile/value"
)

// queryFlags are the flags of query alone.
type queryFlags struct {
	raw       bool
	maxDecode size
	texts     []string
	values    []string
}

func newQuery(e *env) *cobra.Command {
	var in sourceFlags
	var out jsonFlags
	f := queryFlags{maxDecode: unlimited}
	cmd := &cobra.Command{
		Use:   "query FILE EXPR [flags]",
		Short: "Run a jq program over a document",
		Long: `Query runs the jq program EXPR over a document and prints each result as a line of JSON. It reads of the document what
the program uses: paths such as .runs[3].energy are found through the table of contents, .runs[] takes one child after
another, and select(.id == 7) decodes the ids alone. What needs a value as a whole, such as "..", an assignment, or a
function of jq without such a rule, decodes it. --stats says how many bytes that were, --max-decode bounds them.

The program sees what spile cat would print, with the same flags. A result that stands in the document is printed as
it stands there; one that was computed has its keys sorted. The program has no access to the environment, to files or
to modules.`,
		Example:           `  echo '{"runs":[{"id":1,"e":[-1.5]},{"id":2,"e":[-2.5,1]}]}' | spile query - '.runs[] | select(.id == 2) | .e | add'`,
		Args:              arguments(2, 2),
		ValidArgsFunction: completeFiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.query(cmd.Context(), args[0], args[1], &in, &out, &f)
		},
	}
	in.add(cmd.Flags())
	out.add(cmd.Flags())
	cmd.Flags().BoolVarP(&f.raw, "raw-output", "r", false, "print strings as they are, without quotes")
	cmd.Flags().Var(&f.maxDecode, "max-decode", "refuse to decode more than N bytes of the document in all (64K, 1.5GiB)")
	cmd.Flags().StringArrayVar(&f.texts, "arg", nil, "make $NAME the text VALUE in the program, as `NAME=VALUE`")
	cmd.Flags().StringArrayVar(&f.values, "argjson", nil, "make $NAME the JSON value, as `NAME=JSON`")
	return cmd
}

func (e *env) query(ctx context.Context, file, program string, in *sourceFlags, out *jsonFlags, f *queryFlags) error {
	q, err := f.compile(program, in, out)
	if err != nil {
		return err
	}
	in.lossless, in.keepDup, in.invalidUTF8 = out.Lossless, out.Dup != value.DupError, out.InvalidUTF8
	d, err := e.open(ctx, file, in)
	if err != nil {
		return err
	}
	defer d.Close()
	defer func() {
		decoded := d.Stats().Decoded
		e.decoded = &decoded
	}()
	var losses value.Losses
	for result, err := range q.Run(ctx, d.Root(), &losses) {
		if err == nil {
			err = e.printResult(result, f.raw)
		}
		if err != nil {
			if err := e.out.Flush(); err != nil { // the results so far are right
				return err
			}
			return named(err, d.name)
		}
	}
	e.losses(d.name, &losses)
	return nil
}

func (f *queryFlags) compile(program string, in *sourceFlags, out *jsonFlags) (*jq.Query, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	o := &jq.Options{JSON: &out.JSONOptions, Limits: in.limits(), MaxDecode: int64(f.maxDecode), Variables: make(map[string]any)}
	if f.maxDecode == 0 {
		return nil, usagef("--max-decode wants 1 or more")
	}
	for _, text := range f.texts {
		name, v, ok := strings.Cut(text, "=")
		if !ok {
			return nil, usagef("--arg %s, want NAME=VALUE", text)
		}
		o.Variables[name] = v
	}
	for _, text := range f.values {
		name, v, ok := strings.Cut(text, "=")
		if !ok {
			return nil, usagef("--argjson %s, want NAME=JSON", text)
		}
		parsed, err := jq.ParseValue(v)
		if err != nil {
			return nil, usagef("--argjson %s: %s", name, message(err))
		}
		o.Variables[name] = parsed
	}
	q, err := jq.Compile(program, o)
	if err != nil {
		return nil, usagef("program: %s", message(err))
	}
	return q, nil
}

// printResult prints a result on a line. Nothing of it is printed when it fails, unless it is long; then what is printed
// is the beginning of it.
func (e *env) printResult(result jq.Result, raw bool) error {
	if raw {
		text, ok, err := result.Text()
		if err != nil {
			return err
		}
		if ok {
			e.out.WriteString(text)
			return e.out.WriteByte('\n')
		}
	}
	h := held{out: e.out}
	if err := result.WriteJSON(&h); err != nil {
		return err
	}
	e.out.Write(h.text)
	return e.out.WriteByte('\n')
}

// held keeps the beginning of a text back, so that a text that is short can be dropped when the end of it fails.
type held struct {
	out  io.Writer
	text []byte
	long bool
}

func (h *held) Write(p []byte) (int, error) {
	const most = 64 << 10
	if !h.long && len(h.text)+len(p) <= most {
		h.text = append(h.text, p...)
		return len(p), nil
	}
	h.long = true
	if len(h.text) > 0 {
		if _, err := h.out.Write(h.text); err != nil {
			return 0, err
		}
		h.text = nil
	}
	return h.out.Write(p)
}
