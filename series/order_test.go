package series

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// Of several faults the one is told that stands first in the order of blocks and of their columns, wherever a range cuts.
func TestFirstOfFaults(t *testing.T) {
	ctx := context.Background()
	m := &Manifest{RegionID: 1, Tags: []Tag{{1, "host"}, {2, "zone"}}}
	var records []Record
	for i := range uint64(120) {
		records = append(records, Record{ID: ID{1, 3 + 300*i}, RowCount: 1 + i, Labels: []Label{{"host", fmt.Sprintf("host-%d", i%37)}, {"zone", strings.Repeat("z", int(i%7))}}})
	}
	target := buildIn(t, m, records, &WriteOptions{BlockSeries: 40})
	part := target[PartName(0)]
	f, err := parseFrame(part[:headerSize], part[len(part)-trailerSize:], uint64(len(part)), nil)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := parseLeaf(part[f.root.Offset:f.root.end()], f, f.root, nil)
	if err != nil || len(blocks) != 3 {
		t.Fatal(err, len(blocks))
	}
	questions := []struct {
		name string
		cols []int // that it reads
		ask  func(a *Artifact, q *Query) error
	}{
		{"select", []int{0, 1, 2, 3}, func(a *Artifact, q *Query) error { _, err := collect(a.Select(ctx, q)); return err }},
		{"limited", []int{0, 1, 2, 3}, func(a *Artifact, q *Query) error {
			limited := *q
			limited.Limit = 1000
			_, err := collect(a.Select(ctx, &limited))
			return err
		}},
		{"values", []int{2}, func(a *Artifact, q *Query) error { _, err := a.LabelValues(ctx, "host", q); return err }},
		{"sum", []int{1}, func(a *Artifact, q *Query) error { _, err := a.SumRows(ctx, q); return err }},
		{"count", nil, func(a *Artifact, q *Query) error { _, err := a.Count(ctx, q); return err }},
	}
	type place struct{ block, column int }
	var places []place
	for b := range blocks {
		for c := range blocks[b].columns {
			places = append(places, place{b, c})
		}
	}
	ranges := []*Range{nil, {ID{1, blocks[0].First.TSID + 1}, ID{1, 1 << 40}}, {ID{}, ID{1, blocks[2].Last.TSID - 1}}, {ID{1, blocks[0].First.TSID + 1}, ID{1, blocks[2].Last.TSID - 1}}}
	for i, x := range places {
		for _, y := range places[i+1:] {
			p := slices.Clone(part)
			for _, at := range []place{x, y} {
				c := &blocks[at.block].columns[at.column]
				p[c.end()-1] |= 0x80 // what does not end, check 70
				resignChunk(p, f, c)
			}
			objects := map[string][]byte{ManifestName: target[ManifestName], PartName(0): p}
			for _, in := range ranges {
				for _, question := range questions {
					want := ""
					for _, at := range []place{y, x} {
						b := &blocks[at.block]
						cut := at.column == 0 && in != nil && !in.covers(b.Range)
						if cut || slices.Contains(question.cols, at.column) {
							want = fmt.Sprintf("leaf 0, block %d, column %s", at.block, b.columns[at.column].name)
						}
					}
					for _, cost := range []source.Cost{{}, {Gap: 1 << 20, Parallel: 4}} {
						for _, cache := range []int64{-1, 0} {
							a, err := Open(ctx, func(ctx context.Context, name string) (source.Object, error) {
								obj, err := memoryArtifact(objects)(ctx, name)
								return priced{obj, cost}, err
							}, &Options{CacheBytes: cache})
							if err != nil {
								t.Fatal(err)
							}
							for range 2 {
								err := question.ask(a, &Query{Range: in})
								got, _ := errors.AsType[*fault.Error](err)
								if want == "" && err != nil || want != "" && (got == nil || Check(err) != 70 || got.Where != want) {
									t.Errorf("%v and %v are damaged, %s of %v, cache %d, %+v: %v, want %q", x, y, question.name, in, cache, cost, err, want)
								}
							}
							a.Close()
						}
					}
				}
			}
		}
	}
}
