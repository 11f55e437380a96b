package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/value"
)

func newLs(e *env) *cobra.Command {
	var in sourceFlags
	var out tableFlags
	cmd := &cobra.Command{
		Use:   "ls FILE [PATH] [flags]",
		Short: "List the children of a node",
		Long: `Ls lists the children of the list or map at PATH, or of the root: kind, length of lists and maps, stored bytes, and
a path that get takes. Of a value that has no children it prints the value's own line. Of a JSON file the bytes are
those of its CBOR form.

Of a table it lists the columns, with type, stored bytes and encoding, by the names of --schema or by their tags. Of a
series artifact it lists the parts; part-0 are the leaves of a part, part-0/2 the blocks of a leaf, part-0/2/7 the columns
of a block, with their least and greatest values.

` + pathHelp + "\n\n" + manyHelp + "\n\n" + folderHelp + eachHelp,
		Example:           `  echo '{"runs":[{"energy":-1.5},{"energy":-2.5}]}' | spile ls - runs`,
		Args:              arguments(1, 2),
		ValidArgsFunction: completePath(e, &in),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.forEach(cmd.Context(), args[0], &in, out.printed(), func(e *env, file string) error {
				return e.ls(cmd.Context(), with(file, args), &in, &out)
			})
		},
	}
	in.add(cmd.Flags())
	in.addTables(cmd.Flags())
	in.addArtifacts()
	in.addStrict(cmd.Flags())
	out.add(cmd.Flags())
	return cmd
}

// lsRow is a line of ls.
type lsRow struct {
	Path   string          `json:"path"`
	Key    json.RawMessage `json:"key,omitempty"` // the last step: a string, an index, or another key
	Kind   string          `json:"kind"`
	Length *int64          `json:"length,omitempty"`
	Bytes  int64           `json:"bytes"`
}

func (e *env) ls(ctx context.Context, args []string, in *sourceFlags, out *tableFlags) error {
	path, d, n, err := e.node(ctx, args, in)
	if err != nil {
		return err
	}
	defer d.Close()
	if d.table != nil {
		return e.tableLs(ctx, d.table, textOf(args), out)
	}
	if d.artifact != nil {
		return e.artifactLs(ctx, d.artifact, textOf(args), out)
	}
	list := &jsonArray{e: e, pretty: out.pretty}
	print := func(row *lsRow) error {
		if out.asJSON() {
			return list.add(row)
		}
		length := "-"
		if row.Length != nil {
			length = strconv.FormatInt(*row.Length, 10)
		}
		path := row.Path
		if path == "" {
			path = "''" // as a shell takes it
		}
		_, err := fmt.Fprintf(e.out, "%-9s %10s %14d  %s\n", row.Kind, length, row.Bytes, path)
		return err
	}
	if !out.asJSON() {
		fmt.Fprintf(e.out, "%-9s %10s %14s  %s\n", "KIND", "LENGTH", "BYTES", "PATH")
	}
	kind, err := n.Kind(ctx)
	if err != nil {
		return named(err, d.name)
	}
	if kind != value.Array && kind != value.Map {
		row, err := newLsRow(ctx, n, path, nil)
		if err == nil {
			err = print(row)
		}
		if err != nil {
			return named(err, d.name)
		}
	} else if err := eachRow(ctx, n, path, print); err != nil {
		return named(err, d.name)
	}
	if out.asJSON() {
		return list.end("\n")
	}
	return nil
}

// peekBatch is how many children have their first bytes read together.
const peekBatch = 256

func eachRow(ctx context.Context, n msglc.Node, path msglc.Path, print func(*lsRow) error) error {
	batch := make([]msglc.Child, 0, peekBatch)
	for child, err := range n.Children(ctx) {
		if err == nil {
			if batch = append(batch, child); len(batch) < peekBatch {
				continue
			}
		}
		if err := cmp.Or(eachOfBatch(ctx, batch, path, print), err); err != nil {
			return err
		}
		batch = batch[:0]
	}
	return eachOfBatch(ctx, batch, path, print)
}

func eachOfBatch(ctx context.Context, batch []msglc.Child, path msglc.Path, print func(*lsRow) error) error {
	nodes := make([]msglc.Node, len(batch))
	for i, child := range batch {
		nodes[i] = child.Node
	}
	if err := msglc.Peek(ctx, nodes); err != nil {
		return err
	}
	for i, child := range batch {
		key, err := keyJSON(child)
		if err != nil {
			return err
		}
		row, err := newLsRow(ctx, nodes[i], append(slices.Clip(path), child.Step()), key)
		if err != nil {
			return err
		}
		if err := print(row); err != nil {
			return err
		}
	}
	return nil
}

func newLsRow(ctx context.Context, n msglc.Node, path msglc.Path, key json.RawMessage) (*lsRow, error) {
	row := &lsRow{Path: pathText(path), Key: key}
	kind, err := n.Kind(ctx)
	if err != nil {
		return nil, err
	}
	row.Kind = kind.String()
	if kind == value.Array || kind == value.Map {
		length, err := n.Len(ctx)
		if err != nil {
			return nil, err
		}
		row.Length = &length
	}
	row.Bytes, err = n.Size(ctx)
	return row, err
}

// keyJSON is the key of a child in JSON, its index in a list.
func keyJSON(c msglc.Child) (json.RawMessage, error) {
	if c.Key.Data == nil {
		return strconv.AppendInt(nil, c.Index, 10), nil
	}
	return value.AppendJSON(nil, c.Key.Codec, c.Key.Data, value.Limits{}, &value.JSONOptions{
		NonFinite: value.NonFiniteString, InvalidUTF8: value.UTF8Replace, Keys: value.KeysPairs, Dup: value.DupAll,
	}, nil)
}
