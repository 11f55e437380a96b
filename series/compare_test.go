package series

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// memoryTarget takes an artifact in memory.
type memoryTarget map[string][]byte

type memoryOutput struct {
	to   memoryTarget
	name string
	data []byte
}

func (t memoryTarget) Create(_ context.Context, name string) (Output, error) {
	return &memoryOutput{to: t, name: name}, nil
}

func (t memoryTarget) Discard() error {
	clear(t)
	return nil
}

func (o *memoryOutput) Write(p []byte) (int, error) {
	o.data = append(o.data, p...)
	return len(p), nil
}

func (o *memoryOutput) Commit() error {
	o.to[o.name] = o.data
	return nil
}

func (o *memoryOutput) Abort() {}

// opener opens the objects of an artifact in memory.
func (t memoryTarget) opener() Opener {
	return func(_ context.Context, name string) (source.Object, error) {
		b, ok := t[name]
		if !ok {
			return nil, fault.New(fault.NotFound, "series", "is not there").In(name)
		}
		return source.Memory(name, b), nil
	}
}

// buildIn builds an artifact of sorted records in memory.
func buildIn(t testing.TB, meta *Manifest, records []Record, o *WriteOptions) memoryTarget {
	t.Helper()
	target := memoryTarget{}
	w, err := NewWriter(context.Background(), target, meta, o)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, r := range records {
		if err := w.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return target
}

func openIn(t testing.TB, target memoryTarget) *Artifact {
	t.Helper()
	a, err := Open(context.Background(), target.opener(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// randomSeries makes series with labels of some of the tags: many values alike, some empty, some null, some long.
func randomSeries(r *rand.Rand, tags []Tag, n int) []Record {
	var out []Record
	id := ID{Table: 1}
	for range n {
		if r.IntN(40) == 0 {
			id = ID{Table: id.Table + 1 + r.Uint32N(3)}
		}
		id.TSID += 1 + r.Uint64N(5)
		rec := Record{ID: id, RowCount: 1 + r.Uint64N(4), Labels: []Label{}}
		for i, tag := range tags {
			switch k := r.IntN(8); {
			case k == 0:
			case k == 1:
				rec.Labels = append(rec.Labels, Label{tag.Name, ""})
			case k == 2:
				rec.Labels = append(rec.Labels, Label{tag.Name, randomText(r, r.IntN(70))})
			default:
				rec.Labels = append(rec.Labels, Label{tag.Name, fmt.Sprintf("v%d", r.IntN(3+9*i))})
			}
		}
		out = append(out, rec)
	}
	return out
}

// randomText is text of n characters.
func randomText(r *rand.Rand, n int) string {
	alphabet := []rune("abcdefghijKLMNOP0123 /äß→😀")
	text := make([]rune, n)
	for i := range text {
		text[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(text)
}

// Two artifacts of the same series are equal however they are stored, and each kind of difference is found, as a plain
// comparison of all records finds it.
func TestCompare(t *testing.T) {
	ctx := context.Background()
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 7))
		tagsA := []Tag{{1, "host"}, {2, "zone"}, {3, "job"}}
		tagsB := []Tag{{7, "job"}, {1, "zone"}, {2, "host"}, {9, "none"}} // the labels are the same by name
		all := randomSeries(r, tagsA, 1+r.IntN(600))
		a := openIn(t, buildIn(t, &Manifest{Tags: tagsA}, all, &WriteOptions{BlockSeries: 1 + r.IntN(100), PageBytes: 300, PartBytes: 4000}))
		same := openIn(t, buildIn(t, &Manifest{Tags: tagsB}, all, &WriteOptions{BlockSeries: 1 + r.IntN(100), Zstd: true}))
		sum, err := Compare(ctx, a, same, func(d Difference) error { return fmt.Errorf("%s differs", d.ID) })
		if err != nil || !sum.Equal() || sum.Same != uint64(len(all)) {
			t.Fatalf("seed %d: the same series: %+v, %v", seed, sum, err)
		}
		var other []Record
		want := Comparison{}
		kinds := make(map[ID]string)
		for _, rec := range all {
			rec.Labels = slices.Clone(rec.Labels)
			kind := ""
			switch r.IntN(10) {
			case 0:
				want.OnlyA++
				kinds[rec.ID] = "a"
				continue
			case 1:
				rec.RowCount++
				want.Rows++
				kind = "rows"
			case 2, 3: // another value, or a null in place of one
				if len(rec.Labels) == 0 {
					rec.Labels = append(rec.Labels, Label{"zone", ""})
				} else if r.IntN(2) == 0 {
					rec.Labels = rec.Labels[1:]
				} else {
					rec.Labels[0].Value += "!"
				}
				want.Labels++
				kind = "labels"
				if r.IntN(2) == 0 {
					rec.RowCount++
					want.Rows++
					kind = "both"
				}
			case 4: // a null in place of an empty one, which is another thing
				if k := slices.IndexFunc(rec.Labels, func(l Label) bool { return l.Value == "" }); k >= 0 {
					rec.Labels = slices.Delete(rec.Labels, k, k+1)
					want.Labels++
					kind = "labels"
				}
			}
			if kind == "" {
				want.Same++
			} else {
				kinds[rec.ID] = kind
			}
			other = append(other, rec)
		}
		last := ID{Table: 4_000_000_000, TSID: 1}
		other = append(other, Record{ID: last, RowCount: 1})
		want.OnlyB++
		kinds[last] = "b"
		b := openIn(t, buildIn(t, &Manifest{Tags: tagsB}, other, &WriteOptions{BlockSeries: 64}))
		var before ID
		got := make(map[ID]string)
		sum, err = Compare(ctx, a, b, func(d Difference) error {
			if len(got) > 0 && !before.Less(d.ID) {
				t.Errorf("%s comes behind %s", d.ID, before)
			}
			before = d.ID
			switch {
			case d.A == nil:
				got[d.ID] = "b"
			case d.B == nil:
				got[d.ID] = "a"
			case d.Rows && d.Labels != nil:
				got[d.ID] = "both"
			case d.Rows:
				got[d.ID] = "rows"
			default:
				got[d.ID] = "labels"
			}
			return nil
		})
		if err != nil || *sum != want {
			t.Fatalf("seed %d: %+v, %v, want %+v", seed, sum, err, want)
		}
		if len(got) != len(kinds) {
			t.Errorf("seed %d: %d differences, want %d", seed, len(got), len(kinds))
		}
		for id, kind := range kinds {
			if got[id] != kind {
				t.Errorf("seed %d: %s: %q, want %q", seed, id, got[id], kind)
			}
		}
	}
}

// A bad artifact fails a comparison on either side with its class, whatever was found before it; an error of the caller and
// the end of the context end it.
func TestCompareFails(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx := context.Background()
	good, err := Open(ctx, Folder(readVector(t, vectorFolder+"/example-b1.json").folder), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer good.Close()
	ignore := func(Difference) error { return nil }
	compared := 0
	for _, v := range vectors(t, "bad/*.json", 50) {
		bad, err := Open(ctx, Folder(v.folder), nil)
		if err != nil {
			continue // TestBadVectors looks at these
		}
		_, first := Compare(ctx, bad, good, ignore)
		_, second := Compare(ctx, good, bad, ignore)
		bad.Close()
		for _, err := range []error{first, second} {
			if Check(err) != Check(readAll(ctx, v.folder)) || (err == nil) != (readAll(ctx, v.folder) == nil) {
				t.Errorf("%s: %v, reading all of it: %v", v.Name, err, readAll(ctx, v.folder))
			}
		}
		compared++
	}
	if compared < 20 {
		t.Errorf("%d bad artifacts", compared)
	}
	enough := errors.New("enough")
	other := openIn(t, buildIn(t, &Manifest{Tags: []Tag{{1, "host"}}}, []Record{{ID: ID{1, 1}, RowCount: 1}}, nil))
	if _, err := Compare(ctx, good, other, func(Difference) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("the error of the caller: %v", err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := Compare(gone, good, other, ignore); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}
