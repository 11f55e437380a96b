package series

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

var redactKey = bytes.Repeat([]byte{7}, RedactKeySize)

// redactIn redacts an artifact in memory.
func redactIn(t testing.TB, a *Artifact, o *RedactOptions) (memoryTarget, *Redactor) {
	t.Helper()
	ctx := context.Background()
	r, err := NewRedactor(ctx, a, o)
	if err != nil {
		t.Fatal(err)
	}
	records, err := collect(r.Records(ctx))
	if err != nil {
		t.Fatal(err)
	}
	return buildIn(t, r.Manifest(), records, r.Layout()), r
}

// class is the class of a length, as the documents have it.
func class(n int) int {
	switch {
	case n == 0:
		return 0
	case n <= 8:
		return 1
	}
	k := 2
	for most := 16; n > most; most *= 2 {
		k++
	}
	return k
}

// verifyIn demands that a verifier finds nothing in an artifact, but that its bucket is empty.
func verifyIn(t testing.TB, target memoryTarget) {
	t.Helper()
	o := &VerifyOptions{Full: true, List: func(context.Context) ([]string, error) { return slices.Collect(maps.Keys(target)), nil }}
	err := Verify(context.Background(), target.opener(), o, func(f Finding) {
		if f.Check != 85 || !f.Warning {
			t.Errorf("verify: %v", f.Err)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// sameShape demands of redacted records what redacting keeps, and returns the values of each label by their replacements.
func sameShape(t *testing.T, was, is []Record, tags, newTags []Tag, keep []string) []map[string]string {
	t.Helper()
	if len(was) != len(is) {
		t.Fatalf("%d series, want %d", len(is), len(was))
	}
	value := func(r Record, name string) (string, bool) {
		k := slices.IndexFunc(r.Labels, func(l Label) bool { return l.Name == name })
		if k < 0 {
			return "", false
		}
		return r.Labels[k].Value, true
	}
	var all []map[string]string
	for i, tag := range tags {
		forth, back := make(map[string]string), make(map[string]string)
		for k := range was {
			if was[k].ID != is[k].ID || was[k].RowCount != is[k].RowCount {
				t.Fatalf("%+v became %+v", was[k], is[k])
			}
			a, hasA := value(was[k], tag.Name)
			b, hasB := value(is[k], newTags[i].Name)
			if hasA != hasB {
				t.Fatalf("%s: %+v became %+v", tag.Name, was[k], is[k])
			}
			if !hasA {
				continue
			}
			if before, ok := forth[a]; ok && before != b {
				t.Errorf("%s: %q became %q and %q", tag.Name, a, before, b)
			}
			if before, ok := back[b]; ok && before != a {
				t.Errorf("%s: %q and %q became %q", tag.Name, before, a, b)
			}
			forth[a], back[b] = b, a
			if slices.Contains(keep, tag.Name) {
				if a != b {
					t.Errorf("%s is kept, and %q became %q", tag.Name, a, b)
				}
			} else if class(len(a)) != class(len(b)) {
				t.Errorf("%s: %q of %d bytes became %q", tag.Name, a, len(a), b)
			}
		}
		olds := slices.Sorted(maps.Keys(forth))
		for k := 1; k < len(olds); k++ {
			if forth[olds[k-1]] >= forth[olds[k]] {
				t.Errorf("%s: %q < %q became %q, %q", tag.Name, olds[k-1], olds[k], forth[olds[k-1]], forth[olds[k]])
			}
		}
		all = append(all, back)
	}
	return all
}

// Order, cardinality, classes of length, nulls and numbers of rows stay; no value of 4 bytes or more is left in any byte of
// the artifact; and that is a good one.
func TestRedact(t *testing.T) {
	tags := []Tag{{1, "zeta"}, {2, "alpha"}, {3, "middle"}, {4, "kept"}, {5, "none"}}
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 3))
		records := randomSeries(r, tags[:4], 1+r.IntN(1200))
		for i := range records { // values of one byte, long ones, and ones that begin alike
			for k := range records[i].Labels {
				l := &records[i].Labels[k]
				switch r.IntN(12) {
				case 0:
					l.Value = string(rune(r.IntN(128)))
				case 1:
					l.Value = strings.Repeat("x", 1<<r.IntN(10)) + randomText(r, 3)
				case 2:
					l.Value = fmt.Sprintf("%04d", r.IntN(10_000))
				}
				if l.Name == "kept" {
					l.Value = "~k~"
				}
			}
		}
		a := openIn(t, buildIn(t, &Manifest{RegionID: 5, Generation: UUID{1, 2, 3}, Tags: tags, Coverage: Coverage{BucketStart: &Timestamp{1, "Second"}, BucketEnd: &Timestamp{2, "Second"}}}, records, &WriteOptions{BlockSeries: 100}))
		o := &RedactOptions{Key: redactKey, Keep: []string{"kept"}, Names: seed%2 == 1}
		target, redactor := redactIn(t, a, o)
		verifyIn(t, target)
		b := openIn(t, target)
		is, err := collect(b.Records(context.Background(), everything))
		if err != nil {
			t.Fatal(err)
		}
		sameShape(t, records, is, tags, b.Tags(), o.Keep)
		for i := range tags {
			if (b.Tags()[i].Name == tags[i].Name) == o.Names || b.Tags()[i].ColumnID != tags[i].ColumnID {
				t.Errorf("the label %v became %v", tags[i], b.Tags()[i])
			}
			for k := range i {
				if (tags[k].Name < tags[i].Name) != (b.Tags()[k].Name < b.Tags()[i].Name) {
					t.Errorf("the names %s and %s became %s and %s", tags[k].Name, tags[i].Name, b.Tags()[k].Name, b.Tags()[i].Name)
				}
			}
		}
		for _, rec := range records {
			for _, l := range rec.Labels {
				if len(l.Value) < 4 {
					continue
				}
				for name, data := range target {
					if bytes.Contains(data, []byte(l.Value)) {
						t.Fatalf("seed %d: %s contains the value %q of %s", seed, name, l.Value, l.Name)
					}
				}
			}
		}
		if o.Names {
			for _, tag := range tags {
				if bytes.Contains(target[ManifestName], []byte(`"`+tag.Name+`"`)) || bytes.Contains(target[PartName(0)], []byte(tag.Name)) {
					t.Errorf("the name %s is left", tag.Name)
				}
			}
		}
		// The same key makes the same bytes, and another one other texts.
		again, _ := redactIn(t, a, o)
		if !maps.EqualFunc(target, again, bytes.Equal) {
			t.Errorf("seed %d: other bytes the second time", seed)
		}
		other := *o
		other.Key = bytes.Repeat([]byte{8}, RedactKeySize)
		if _, second := redactIn(t, a, &other); second.Manifest().Generation == redactor.Manifest().Generation || maps.Equal(second.values[0], redactor.values[0]) && len(records) > 50 {
			t.Errorf("seed %d: another key makes no difference", seed)
		}
		if p, q := blockRanges(t, a), blockRanges(t, b); !slices.Equal(p, q) {
			t.Errorf("seed %d: the blocks are others", seed)
		}
	}
}

func blockRanges(t *testing.T, a *Artifact) (out []Range) {
	t.Helper()
	for b, err := range a.blocks(context.Background(), []Range{everything}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b.Range)
	}
	return out
}

// Values of which every short text is one are replaced by texts that have none of them in it, or not at all.
func TestRedactAvoids(t *testing.T) {
	texts := func(n int) (all []string) {
		for i := range n {
			all = append(all, string([]byte{textAlphabet[i>>18&63], textAlphabet[i>>12&63], textAlphabet[i>>6&63], textAlphabet[i&63]}))
		}
		return all
	}
	r := &Redactor{a: &Artifact{name: "x"}, opts: RedactOptions{Key: redactKey}}
	r.keyed = hmac.New(sha256.New, redactKey)
	values := texts(140_000) // ranks of four digits: all that begin as these do are left out
	for _, v := range values {
		r.avoid.add(v)
	}
	got, err := r.replace("value", "l", values, textAlphabet, "", lengthOf)
	if err != nil || len(got) != len(values) || !slices.IsSorted(got) {
		t.Fatal(err, len(got))
	}
	for i, text := range got {
		if i > 0 && got[i-1] == text || len(text) != shortText {
			t.Fatalf("%q is there twice, or has another length", text)
		}
		for k := range len(text) - 3 {
			if _, ok := r.avoid.texts[text[k:k+4]]; ok {
				t.Fatalf("%q contains a value", text)
			}
		}
	}
	// Where no text is left, that is an error.
	small := &Redactor{a: &Artifact{name: "x"}, opts: RedactOptions{Key: redactKey}}
	small.keyed = r.keyed
	for a := range len("ab") * 2 * 2 * 2 {
		small.avoid.add(string([]byte{"ab"[a>>3&1], "ab"[a>>2&1], "ab"[a>>1&1], "ab"[a&1]}))
	}
	if _, err := small.replace("value", "l", []string{"v"}, "ab", "", lengthOf); !errors.Is(err, fault.Limit) {
		t.Errorf("no text is left: %v", err)
	}
}

func TestRedactMetrics(t *testing.T) {
	a := openIn(t, buildIn(t, &Manifest{Tags: []Tag{{1, "host"}}}, []Record{{ID: ID{1, 1}, RowCount: 1}}, nil))
	r, err := NewRedactor(context.Background(), a, &RedactOptions{Key: redactKey})
	if err != nil {
		t.Fatal(err)
	}
	names := map[uint32]string{9: "up", 3: "http_requests_total", 4: "go_gc", 5: "up"}
	got, err := r.Metrics(names)
	if err != nil || len(got) != 4 || got[9] != got[5] || !(got[4] < got[3] && got[3] < got[9]) {
		t.Errorf("%v, %v", got, err)
	}
	for id, name := range got {
		if name == names[id] || len(name) != nameText || name[0] != 'm' {
			t.Errorf("%q became %q", names[id], name)
		}
	}
}

// What cannot be redacted: no key, a label that is not there, a part alone, too little memory, a column that no known codec
// reads, and bad artifacts, with the class that reading them has.
func TestRedactFails(t *testing.T) {
	ctx := context.Background()
	a := hosts(t, 1000, nil)
	for name, c := range map[string]struct {
		o    RedactOptions
		want error
	}{
		"a short key": {RedactOptions{Key: []byte("short")}, fault.Invalid},
		"a label":     {RedactOptions{Key: redactKey, Keep: []string{"nothing"}}, fault.NotFound},
		"memory":      {RedactOptions{Key: redactKey, Memory: 10_000}, fault.Limit},
	} {
		if _, err := NewRedactor(ctx, a, &c.o); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	obj, err := source.OpenFile(readVector(t, vectorFolder+"/example-b1.json").folder + "/" + PartName(0))
	if err != nil {
		t.Fatal(err)
	}
	part, err := OpenPart(ctx, obj, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer part.Close()
	if _, err := NewRedactor(ctx, part, &RedactOptions{Key: redactKey}); !errors.Is(err, fault.Invalid) {
		t.Errorf("a part alone: %v", err)
	}
	for _, v := range append(vectors(t, "bad/*.json", 50), vectors(t, "unknown-*.json", 2)...) {
		whole := readAll(ctx, v.folder)
		b, err := Open(ctx, Folder(v.folder), nil)
		if err == nil {
			var r *Redactor
			if r, err = NewRedactor(ctx, b, &RedactOptions{Key: redactKey}); err == nil {
				_, err = collect(r.Records(ctx))
			}
			b.Close()
		}
		if Check(err) != Check(whole) || (err == nil) != (whole == nil) {
			t.Errorf("%s: %v, reading all: %v", v.Name, err, whole)
		}
	}
}

// Every good vector whose columns can be read is redacted into a good artifact of the same shape.
func TestRedactVectors(t *testing.T) {
	ctx := context.Background()
	for _, v := range vectors(t, "*.json", 40) {
		if len(v.UnknownCodec) > 0 || slices.ContainsFunc(v.Records, func(r recordJSON) bool { return r.RowCount == 0 }) {
			continue
		}
		a, err := Open(ctx, Folder(v.folder), nil)
		if err != nil {
			t.Fatal(err)
		}
		was, err := collect(a.Records(ctx, everything))
		if err != nil {
			t.Fatal(err)
		}
		target, _ := redactIn(t, a, &RedactOptions{Key: redactKey, Names: true})
		verifyIn(t, target)
		b := openIn(t, target)
		is, err := collect(b.Records(ctx, everything))
		if err != nil {
			t.Fatal(err)
		}
		if len(was) < 20_000 {
			sameShape(t, was, is, a.Tags(), b.Tags(), nil)
		}
		a.Close()
	}
}
