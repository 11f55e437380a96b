package series

import (
	"context"
	"errors"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// sharedChunk is a part of two leaves, of a block each, whose blocks have a chunk in common, which no check of a reader
// forbids: the TSIDs of twelve series are those of six as well when asTSIDs, or the values of a tag of one.
func sharedChunk(t *testing.T, asTSIDs bool) source.Object {
	t.Helper()
	p := appendHeader(nil)
	store := func(c column, bytes []byte, encoding uint16) column {
		c.payloadRef, _ = seal(bytes, encoding, nil)
		c.Offset = uint64(len(p))
		p = append(p, bytes...)
		return c
	}
	numbers := func(from uint64, n int) []byte {
		v := make([]uint64, n)
		for i := range v {
			v[i] = from + uint64(i)
		}
		return appendDeltas(nil, v)
	}
	tsid, count := column{name: tsidColumn}, column{name: rowCountColumn}
	second := block{Range: Range{ID{1, 20}, ID{1, 25}}, series: 6}
	if !asTSIDs {
		second = block{Range: Range{ID{1, 20}, ID{1, 20}}, series: 1}
		second.columns = append(second.columns, store(tsid, numbers(20, 1), encodingDelta), store(count, numbers(3, 1), encodingDelta))
	}
	first := block{Range: Range{ID{1, 1}, ID{1, 12}}, series: 12}
	first.columns = append(first.columns, store(tsid, numbers(1, 12), encodingDelta))
	shared := first.columns[0]
	first.columns = append(first.columns, store(count, numbers(1, 12), encodingDelta))
	if asTSIDs {
		second.columns = append(second.columns, shared, store(count, numbers(3, 6), encodingDelta))
	} else {
		shared.name, shared.Encoding, shared.hasStats = "host", encodingDict, true
		shared.min, shared.max = "a", "b"
		second.columns = append(second.columns, shared)
	}
	f := frame{depth: 2, payloadEnd: uint64(len(p))}
	page := func(bytes []byte, r Range) pageRef {
		ref, _ := seal(bytes, encodingPage, nil)
		ref.Offset = uint64(len(p))
		p = append(p, bytes...)
		return pageRef{r, ref}
	}
	leaves := []pageRef{page(appendLeaf(nil, []block{first}), first.Range), page(appendLeaf(nil, []block{second}), second.Range)}
	f.root = page(appendInternal(nil, leaves), Range{first.First, second.Last})
	f.size = uint64(len(p)) + trailerSize
	return source.Memory("shared.series", f.appendTrailer(p))
}

// What is remembered of a chunk serves the block that it was decoded for, and no other.
func TestCacheOfSharedChunks(t *testing.T) {
	ctx := context.Background()
	for _, asTSIDs := range []bool{false, true} {
		for _, cacheBytes := range []int64{0, -1} {
			a, err := OpenPart(ctx, sharedChunk(t, asTSIDs), &Options{CacheBytes: cacheBytes})
			if err != nil {
				t.Fatal(err)
			}
			read := func(what string, q *Query, want int) {
				n := 0
				for _, err = range a.Select(ctx, q) {
					if err == nil {
						n++
					}
				}
				if n != want || Check(err) < 70 {
					t.Errorf("TSIDs %v, cache %d, %s: %d series, %v", asTSIDs, cacheBytes, what, n, err)
				}
			}
			for range 2 {
				first := 0
				for _, err := range a.Records(ctx, Range{ID{1, 1}, ID{1, 12}}) {
					if err != nil {
						t.Fatal(err)
					}
					first++
				}
				if first != 12 {
					t.Errorf("%d series in front", first)
				}
				read("the second block", &Query{Range: &Range{ID{1, 20}, ID{1, 25}}}, 0)
				if _, err := a.Lookup(ctx, ID{1, 20}); !errors.Is(err, fault.Corrupt) && !errors.Is(err, fault.NotFound) {
					t.Errorf("TSIDs %v, cache %d: looked up: %v", asTSIDs, cacheBytes, err)
				}
			}
			a.Close()
		}
	}
}
