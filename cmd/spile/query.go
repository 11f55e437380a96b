package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spilehq/spile/adapters/jq"
	"github.com/spilehq/spile/value"
)

// queryFlags are the flags of query alone.
type queryFlags struct {
	raw       bool
	maxDecode size
	texts     pairs
	values    pairs
}

// pairs is the value of a flag that takes NAME=WHAT, any number of times.
type pairs struct {
	what string
	list [][2]string
}

func (p *pairs) Set(text string) error {
	name, v, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return fmt.Errorf("want NAME=%s as one argument, where jq takes two", p.what)
	}
	p.list = append(p.list, [2]string{name, v})
	return nil
}

func (p *pairs) String() string { return "" }

func (p *pairs) Type() string { return "NAME=" + p.what }

func newQuery(e *env) *cobra.Command {
	var in sourceFlags
	var out jsonFlags
	f := newQueryFlags()
	cmd := &cobra.Command{
		Use:   "query FILE EXPR [flags]",
		Short: "Run a jq program over a document",
		Long: `Query runs the jq program EXPR over a document and prints each result as a line of JSON. It reads of the document what
the program uses: paths such as .runs[3].energy are found through the table of contents, .runs[] takes one child after
another, and select(.id == 7) decodes the ids alone. What needs a value as a whole, such as "..", an assignment, or a
function of jq without such a rule, decodes it. --stats says how many bytes that were, --max-decoded bounds them.

The program sees what spile cat would print, with the same flags. A result that stands in the document is printed as
it stands there; one that was computed has its keys sorted. The program has no access to the environment, to files or
to modules.

` + manyHelp,
		Example:           `  echo '{"runs":[{"id":1,"e":[-1.5]},{"id":2,"e":[-2.5,1]}]}' | spile query - '.runs[] | select(.id == 2) | .e | add'`,
		Args:              arguments(2, 2),
		ValidArgsFunction: completeFiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.forEach(cmd.Context(), args[0], &in, f.printed(&out), func(e *env, file string) error {
				return e.query(cmd.Context(), file, args[1], &in, &out, &f)
			})
		},
	}
	in.add(cmd.Flags())
	out.add(cmd.Flags())
	f.add(cmd.Flags())
	return cmd
}

// printed is how query prints: strings without quotes are no JSON.
func (f *queryFlags) printed(out *jsonFlags) printedAs {
	if f.raw {
		return asText
	}
	return out.printed()
}

func newQueryFlags() queryFlags {
	return queryFlags{maxDecode: unlimited, texts: pairs{what: "VALUE"}, values: pairs{what: "JSON"}}
}

func (f *queryFlags) add(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.raw, "raw-output", "r", false, "print strings as they are, without quotes")
	flags.Var(&f.maxDecode, "max-decoded", "refuse to decode more than N bytes of the document in all (64K, 1.5GiB)")
	flags.Var(&f.texts, "arg", "make $NAME the text VALUE in the program; may be given more than once")
	flags.Var(&f.values, "argjson", "make $NAME the JSON value in the program; may be given more than once")
}

func (e *env) query(ctx context.Context, file, program string, in *sourceFlags, out *jsonFlags, f *queryFlags) error {
	if file != "-" && !isFile(file) && isFile(program) {
		return usagef("query takes FILE first, then EXPR: spile query %s %s", shellWord(program), shellWord(file))
	}
	q, err := f.compile(program, in, out)
	if err != nil {
		return err
	}
	d, err := e.openToPrint(ctx, file, in, out)
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
			err = e.printResult(result, f)
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

// isFile reports whether an argument names something that is there, as far as that can be told.
func isFile(arg string) bool {
	path, err := localPath(arg)
	if err != nil {
		return strings.Contains(arg, "://")
	}
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// shellWord is a word as a shell takes it.
func shellWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

var plainWord = regexp.MustCompile(`^[\w.,:/@%+=-]+$`)

// undefined is the error about a word that is no function of jq, which may have been meant as a key.
var undefined = regexp.MustCompile(`function not defined: (\w+)/0$`)

func (f *queryFlags) compile(program string, in *sourceFlags, out *jsonFlags) (*jq.Query, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	o := &jq.Options{JSON: &out.JSONOptions, Limits: in.limits(), MaxDecode: int64(f.maxDecode), Variables: make(map[string]any)}
	if f.maxDecode == 0 {
		return nil, usagef("--max-decoded wants 1 or more")
	}
	for _, arg := range f.texts.list {
		o.Variables[arg[0]] = arg[1]
	}
	for _, arg := range f.values.list {
		v, err := jq.ParseValue(arg[1])
		if err != nil {
			return nil, usagef("--argjson %s: %s", arg[0], message(err))
		}
		o.Variables[arg[0]] = v
	}
	q, err := jq.Compile(program, o)
	if err != nil {
		if name := undefined.FindStringSubmatch(message(err)); name != nil {
			return nil, usagef("program: %s; a key is .%s", message(err), name[1])
		}
		return nil, usagef("program: %s", strings.Replace(message(err), "unexpected EOF", "it ends too early", 1))
	}
	return q, nil
}

// printResult prints a result on a line. Nothing of it is printed when it fails, unless it is long; then what is printed
// is the beginning of it.
func (e *env) printResult(result jq.Result, f *queryFlags) error {
	if f.raw {
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
