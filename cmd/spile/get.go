package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/value"
)

func newGet(e *env) *cobra.Command {
	var in sourceFlags
	var out jsonFlags
	cmd := &cobra.Command{
		Use:   "get FILE PATH... [flags]",
		Short: "Print one value as JSON",
		Long: `Get prints the value at each PATH as a line of JSON. Of a document it reads the table of contents as far as the path
leads, and the bytes of the value.

` + pathHelp,
		Example:           `  echo '{"runs":[{"energy":-1.5},{"energy":-2.5}]}' | spile get - runs/-1/energy`,
		Args:              arguments(2, -1),
		ValidArgsFunction: completePath(e, &in),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.get(cmd.Context(), args[0], args[1:], &in, &out)
		},
	}
	in.add(cmd.Flags())
	out.add(cmd.Flags())
	return cmd
}

// pathHelp explains paths, for the verbs that take one.
const pathHelp = `A path is a/b/3: keys of maps, and indices of lists, which count from the end when they are negative. Empty steps
are skipped, and '' is the root. A step from:to or from:step:to into a list is a slice of it. A path that starts with /
is a JSON Pointer: ~1 stands for / and ~0 for ~ in a key, and an empty step is the empty key. A key that is not a
string is written {…} with its JSON form inside, as {7}. Of a key that occurs twice a path takes the last. The step of a
slice stands in the middle: 0:5:100 is every fifth of the first 100. A path that starts with - goes behind --.`

func (e *env) get(ctx context.Context, file string, paths []string, in *sourceFlags, out *jsonFlags) error {
	parsed, err := parsePaths(paths)
	if err != nil {
		return err
	}
	in.lossless, in.keepDup, in.invalidUTF8 = out.Lossless, out.Dup != value.DupError, out.InvalidUTF8
	d, err := e.open(ctx, file, in)
	if err != nil {
		return err
	}
	defer d.Close()
	var losses value.Losses
	for _, p := range parsed {
		if err := e.printValue(ctx, d, p, out, &losses); err != nil {
			return err
		}
	}
	e.losses(d.name, &losses)
	return nil
}

// printValue prints the value at a path as a line of JSON. Nothing of it is printed when it fails, unless it is long;
// then what is printed is the beginning of it.
func (e *env) printValue(ctx context.Context, d *document, p msglc.Path, out *jsonFlags, losses *value.Losses) error {
	n, err := d.Find(ctx, p)
	if err != nil {
		return named(err, d.name)
	}
	if err := n.WriteJSON(ctx, e.out, &out.JSONOptions, losses); err != nil {
		return named(err, d.name)
	}
	e.out.WriteByte('\n')
	return e.out.Flush()
}

func parsePaths(texts []string) ([]msglc.Path, error) {
	paths := make([]msglc.Path, len(texts))
	for i, text := range texts {
		var err error
		if paths[i], err = msglc.ParsePath(text); err != nil {
			return nil, usagef("path %q: %s", text, message(err))
		}
	}
	return paths, nil
}

// optionalPath is the path in the arguments FILE [PATH].
func optionalPath(args []string) (msglc.Path, error) {
	if len(args) < 2 {
		return nil, nil
	}
	paths, err := parsePaths(args[1:2])
	if err != nil {
		return nil, err
	}
	return paths[0], nil
}

// node opens what the arguments FILE [PATH] name. The caller closes the document.
func (e *env) node(ctx context.Context, args []string, in *sourceFlags) (msglc.Path, *document, msglc.Node, error) {
	path, err := optionalPath(args)
	if err != nil {
		return nil, nil, msglc.Node{}, err
	}
	d, err := e.open(ctx, args[0], in)
	if err != nil {
		return nil, nil, msglc.Node{}, err
	}
	n, err := d.Find(ctx, path)
	if err != nil {
		d.Close()
		return nil, nil, n, named(err, d.name)
	}
	return path, d, n, nil
}
