package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/adapters/seriesjson"
	"github.com/spilehq/spile/series"
)

// shownDifferences is how many differences of each kind are printed unless --limit says otherwise.
const shownDifferences = 10

func newSeriesCompare(e *env) *cobra.Command {
	var in sourceFlags
	c := &seriesCompare{env: e, limit: shownDifferences}
	cmd := &cobra.Command{
		Use:   "compare A B [flags]",
		Short: "Compare the series of two artifacts",
		Long: `Compare tells which series are in A alone, which in B alone, and which of both have other labels or another number of
rows. Blocks, pages, parts, compression and generation make no difference: the same series built twice are equal. Labels are
the same by their names, and a label that is missing is not one that is empty.

A line that begins with - is of A, one with + of B, in the order of tables and TSIDs: the first --limit of each kind. The
counts stand below, of all of them. The exit status is 0 when there is no difference, and 1 when there is one. Memory is that of
some blocks of each.`,
		Example: exampleMeta + `
  echo '{"table_id":1025,"tsid":10,"row_count":3,"labels":{"host":"web-1"}}' | spile series build --meta meta.json - -o out
  spile series merge out/1/series/6f1c1f5e-3b0a-4c52-9d6e-0a1b2c3d4e5f -o merged
  spile series compare out/1/series/6f1c1f5e-3b0a-4c52-9d6e-0a1b2c3d4e5f merged/1/series/*`,
		Args:              arguments(2, 2),
		ValidArgsFunction: completeFiles(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.limit < 0 {
				return usagef("--limit %d, want 0 or more", c.limit)
			}
			return e.withArtifact(cmd.Context(), args[0], &in, func(a *artifact) error {
				return e.withArtifact(cmd.Context(), args[1], &in, func(b *artifact) error {
					return c.run(cmd.Context(), a, b)
				})
			})
		},
	}
	in.add(cmd.Flags())
	in.addArtifacts()
	in.artifacts.once = true
	c.form.add(cmd.Flags())
	cmd.Flags().Int64Var(&c.limit, "limit", shownDifferences, "print the first `N` differences of each kind, 0 for all")
	return cmd
}

// seriesCompare is a run of series compare.
type seriesCompare struct {
	*env
	form  tableFlags
	limit int64

	printed [4]int64 // differences of each kind
	text    []byte
}

// differenceJSON is a difference as --json prints it.
type differenceJSON struct {
	Table  uint32          `json:"table_id"`
	TSID   uint64          `json:"tsid"`
	Labels []string        `json:"labels,omitempty"` // that differ
	Rows   bool            `json:"rows,omitempty"`   // their numbers differ
	A      json.RawMessage `json:"a"`
	B      json.RawMessage `json:"b"`
}

func (c *seriesCompare) run(ctx context.Context, a, b *artifact) error {
	defer c.progress(ctx, "series compare")()
	report := c.print
	var list *jsonArray
	if c.form.asJSON() {
		list = &jsonArray{e: c.env, pretty: c.form.pretty}
		report = func(d *series.Difference) error { return c.add(list, d) }
		head, err := marshal([2]string{a.Name(), b.Name()})
		if err != nil {
			return err
		}
		fmt.Fprintf(c.out, `{"files":%s,"differences":`, head)
	}
	sum, err := series.Compare(ctx, a.Artifact, b.Artifact, func(d series.Difference) error {
		if !c.wants(&d) {
			return nil
		}
		return report(&d)
	})
	if err != nil {
		return err
	}
	if list != nil {
		if err := list.end(","); err != nil {
			return err
		}
		text, err := marshal(sum)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.out, "%s\n", text[1:])
	} else {
		c.printCounts(sum)
	}
	if sum.Equal() {
		return nil
	}
	if err := c.out.Flush(); err != nil {
		return err
	}
	return silent{errors.New("the series differ")}
}

// wants reports whether a difference is among the first of its kinds.
func (c *seriesCompare) wants(d *series.Difference) bool {
	wanted := false
	for kind, is := range [4]bool{d.B == nil, d.A == nil, d.Labels != nil, d.Rows} {
		if is && (c.limit == 0 || c.printed[kind] < c.limit) {
			c.printed[kind]++
			wanted = true
		}
	}
	return wanted
}

func (c *seriesCompare) print(d *series.Difference) error {
	for _, side := range []struct {
		sign   byte
		record *series.Record
	}{{'-', d.A}, {'+', d.B}} {
		if side.record == nil {
			continue
		}
		var err error
		if c.text, err = seriesjson.Append(append(c.text[:0], side.sign, ' '), *side.record); err != nil {
			return err
		}
		if _, err := c.out.Write(append(c.text, '\n')); err != nil {
			return err
		}
	}
	return nil
}

func (c *seriesCompare) printCounts(sum *series.Comparison) {
	for _, row := range []struct {
		name string
		n    uint64
	}{{"only in A", sum.OnlyA}, {"only in B", sum.OnlyB}, {"other labels", sum.Labels}, {"other rows", sum.Rows}, {"the same", sum.Same}} {
		fmt.Fprintf(c.out, "%-12s %12d\n", row.name, row.n)
	}
}

func (c *seriesCompare) add(list *jsonArray, d *series.Difference) error {
	row := differenceJSON{Table: d.Table, TSID: d.TSID, Labels: d.Labels, Rows: d.Rows}
	var err error
	if row.A, err = recordJSON(d.A); err != nil {
		return err
	}
	if row.B, err = recordJSON(d.B); err != nil {
		return err
	}
	return list.add(&row)
}

// recordJSON is a record as cat prints it, or null.
func recordJSON(r *series.Record) (json.RawMessage, error) {
	if r == nil {
		return json.RawMessage("null"), nil
	}
	return seriesjson.Append(nil, *r)
}
