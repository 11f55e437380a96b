package main

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/fault"
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
leads, and the bytes of the value. It takes the paths in order and ends with the first that is not there: the values
before it are printed, and the exit status is 1. What the paths need is read together, so that over a network many of them
take little longer than one.

In a table a path is a row, 17 or -1, a cell, 17/label, a column, */label, or a slice of rows, 10:20 or 10:20/label. A
column goes by the name that --schema gives it, or by its tag. An element of an array is 17/drops/0; */drops/0 is that of
every row, null where there is none. Of a column only its own bytes are read.

In a series artifact a path is a series, 1025/10, which is TABLE/TSID; a label of it, 1025/10/host; all series of a
table, 1025; those of a part, a leaf or a block, as ls names them; or a label of all series, */host.

` + pathHelp + "\n\n" + manyHelp + "\n\n" + folderHelp + `What
is printed is that of all of them together: rows of a series that several artifacts of a region have add up, and series come in the
order of tables and TSIDs.`,
		Example: `  echo '{"runs":[{"energy":-1.5},{"energy":-2.5}]}' | spile get - runs/-1/energy`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return usagef("PATH is missing: '' is the root, and spile cat prints all of a file")
			}
			return arguments(2, -1)(cmd, args)
		},
		ValidArgsFunction: completePath(e, &in),
		RunE: func(cmd *cobra.Command, args []string) error {
			many, err := e.notPattern(cmd.Context(), args[0], &in)
			if err != nil {
				return err
			}
			if many != nil {
				return many.getMany(cmd.Context(), args[0], args[1:], &out)
			}
			return e.forEach(cmd.Context(), args[0], &in, out.printed(), func(e *env, file string) error {
				return e.get(cmd.Context(), file, args[1:], &in, &out)
			})
		},
	}
	in.add(cmd.Flags())
	in.addTables(cmd.Flags())
	in.tables.addLabels(cmd.Flags())
	in.addArtifacts()
	in.addStrict(cmd.Flags())
	out.add(cmd.Flags())
	return cmd
}

// pathHelp explains paths, for the verbs that take one.
const pathHelp = `A path is a/b/3: keys of maps, and indices of lists, which count from the end when they are negative. Empty steps
are skipped, and '' is the root. A step from:to or from:step:to into a list is a slice of it. A path that starts with /
is a JSON Pointer: ~1 stands for / and ~0 for ~ in a key, and an empty step is the empty key. A key that is not a
string is written {…} with its JSON form inside, as {7}; so is a key with bytes that are not UTF-8, which stand as \udc80
to \udcff there. Of a key that occurs twice a path takes the last. The step of a
slice stands in the middle: 0:5:100 is every fifth of the first 100. A path that starts with - goes behind --.`

func (e *env) get(ctx context.Context, file string, paths []string, in *sourceFlags, out *jsonFlags) error {
	if _, err := parsePaths(paths); err != nil {
		return err
	}
	return e.printValues(ctx, file, paths, in, out)
}

// printValues prints the values at some paths of a file, without a path all of it, and says what that has lost.
func (e *env) printValues(ctx context.Context, file string, paths []string, in *sourceFlags, out *jsonFlags) error {
	d, err := e.openToPrint(ctx, file, in, out)
	if err != nil {
		return err
	}
	defer d.Close()
	switch {
	case d.table != nil && paths == nil:
		return e.tableCat(ctx, d.table, out)
	case d.table != nil:
		return e.tableGet(ctx, d.table, paths, out)
	case d.artifact != nil && paths == nil:
		return e.artifactCat(ctx, d.artifact, out)
	case d.artifact != nil:
		return e.artifactGet(ctx, d.artifact, paths, out)
	case paths == nil:
		paths = []string{""}
	}
	if err := in.tables.unused(d); err != nil {
		return err
	}
	parsed, err := parsePaths(paths)
	if err != nil {
		return err
	}
	var losses value.Losses
	i := 0
	for n, err := range d.FindAll(ctx, parsed) {
		if err == nil {
			err = e.printValue(ctx, n, out, &losses)
		}
		if err != nil {
			return asGiven(named(err, d.name), paths[i], parsed[i])
		}
		i++
	}
	e.losses(d.name, &losses)
	return nil
}

// printValue prints a value as a line of JSON. Nothing of it is printed when it fails, unless it is long; then what is
// printed is the beginning of it.
func (e *env) printValue(ctx context.Context, n msglc.Node, out *jsonFlags, losses *value.Losses) error {
	if err := n.WriteJSON(ctx, e.out, &out.JSONOptions, losses); err != nil {
		return err
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

// textOf is the path in the arguments FILE [PATH], as it was given.
func textOf(args []string) string {
	if len(args) < 2 {
		return ""
	}
	return args[1]
}

// node opens what the arguments FILE [PATH] name. The caller closes the document. Of a table and an artifact there is no node.
func (e *env) node(ctx context.Context, args []string, in *sourceFlags) (msglc.Path, *document, msglc.Node, error) {
	path, err := optionalPath(args)
	if err != nil {
		return nil, nil, msglc.Node{}, err
	}
	d, err := e.open(ctx, args[0], in)
	if err != nil {
		return nil, nil, msglc.Node{}, err
	}
	if d.table != nil || d.artifact != nil {
		return path, d, msglc.Node{}, nil
	}
	if err := in.tables.unused(d); err != nil {
		d.Close()
		return nil, nil, msglc.Node{}, err
	}
	n, err := d.Find(ctx, path)
	if err != nil {
		d.Close()
		return nil, nil, n, asGiven(named(err, d.name), textOf(args), path)
	}
	return path, d, n, nil
}

// asGiven is the error about a path with the path as it was given: a JSON Pointer stays one. It says how paths are
// written where one looks like those of other tools.
func asGiven(err error, text string, p msglc.Path) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || len(p) == 0 {
		return err
	}
	if strings.HasPrefix(text, "/") {
		steps := strings.Split(text, "/")
		for k := len(p); k > 0 && len(steps) == len(p)+1; k-- {
			if f.Where == p[:k].String() {
				f.Where = strings.Join(steps[:k+1], "/")
				break
			}
		}
	}
	if errors.Is(err, fault.NotFound) && !strings.Contains(text, "://") && isFile(text) {
		return advised{err, text + " is a file, and one FILE is taken: a pattern in quotes stands for many"}
	}
	if other := slashed(text); errors.Is(err, fault.NotFound) && !strings.HasPrefix(text, "/") && other != text {
		return advised{err, "steps are separated by /, as in " + other}
	}
	return err
}

// slashed is a path with dots and brackets, as of jq, with slashes; a path with none of these, and one that has slashes
// and no brackets, stays as it is.
func slashed(text string) string {
	if strings.Contains(text, "/") && !brackets.MatchString(text) || strings.Contains(text, "{") {
		return text
	}
	if inside, ok := strings.CutPrefix(text, "$"); ok && (strings.HasPrefix(inside, ".") || strings.HasPrefix(inside, "[")) { // JSONPath
		return slashed(inside)
	}
	steps := brackets.ReplaceAllString(text, "/$1")
	if !strings.Contains(text, "/") {
		steps = strings.ReplaceAll(steps, ".", "/")
	}
	if steps = strings.Trim(steps, "/"); steps == "" || strings.Contains(steps, "//") {
		return text
	}
	return steps
}

// brackets are an index as most languages write it.
var brackets = regexp.MustCompile(`\[["']?([^\[\]"']+)["']?\]`)
