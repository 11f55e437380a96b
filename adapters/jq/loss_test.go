package jq

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// TestLossesOnce comes to values more than once. What the document could not keep there is counted once, at its place.
func TestLossesOnce(t *testing.T) {
	const c = value.Msgpack
	p := value.AppendMapHeader(nil, c, 3)
	p = value.AppendFloat64(value.AppendString(p, c, "nan"), c, math.NaN()) // at 5
	p = value.AppendArrayHeader(value.AppendString(p, c, "list"), c, 40)
	for range 40 {
		p = value.AppendFloat64(p, c, math.Inf(1)) // from 22 on
	}
	key := int64(len(p))
	p = value.AppendInt(value.AppendInt(p, c, 7), c, 1)
	o := &Options{JSON: &value.JSONOptions{NonFinite: value.NonFiniteNull, Keys: value.KeysString}}
	file := document(t, c, p, msglc.WriteOptions{Threshold: 100, Trivial: 20})
	plain, blocks := raw(t, c, p), open(t, file, nil).Root()
	for _, test := range []struct {
		program string
		nans    int64
		at      int64 // of the first
		keys    int64
	}{
		{`.nan`, 1, 5, 0},
		{`.nan, .nan`, 1, 5, 0},
		{`.nan as $x | [$x, $x, .nan], .nan`, 1, 5, 0},
		{`range(3) as $i | .list[$i], .list[$i]`, 3, 22, 0},
		{`.list, .list, .list[3], (.list | length, add)`, 40, 22, 0},
		{`.list[2:5], .list[3:4]`, 3, 22 + 2*9, 0},
		{`keys, keys, length`, 0, 0, 1},
		{`(., .) | keys`, 0, 0, 1},
		{`.[] | select(type == "array") | length`, 1, 5, 1},
		{`map_values(.), map_values(.)`, 41, 5, 1}, // the whole
		{`infinite, infinite`, 2, 0, 0},            // results, which are no places
	} {
		for start, n := range map[int64]msglc.Node{0: plain, msglc.PrefixSize: blocks} {
			var loss value.Losses
			if _, err := run1(t, n, test.program, o, &loss); err != nil {
				t.Errorf("%s: %v", test.program, err)
			}
			for l := range loss.All() {
				count, at := test.nans, test.at
				if l.Kind == value.LossKey {
					count, at = test.keys, key
				}
				if at > 0 {
					at += start
				}
				if l.Count != count || l.Offset != at {
					t.Errorf("%s: %v, want %d at %d", test.program, l, count, at)
				}
			}
			if want := test.nans + test.keys; loss.Count() != want {
				t.Errorf("%s: %d losses, want %d", test.program, loss.Count(), want)
			}
		}
	}
}

// TestKeyOffset has errors about keys name the place of the key.
func TestKeyOffset(t *testing.T) {
	const c = value.Msgpack
	p := value.AppendInt(value.AppendString(value.AppendMapHeader(nil, c, 3), c, "a"), c, 1)
	number := int64(len(p))
	p = value.AppendInt(value.AppendInt(p, c, 7), c, 2)
	twice := int64(len(p))
	p = value.AppendInt(value.AppendString(p, c, "a"), c, 3)
	for _, test := range []struct {
		program string
		keys    value.KeyMode
		want    int64
	}{
		{`keys`, value.KeysError, number},
		{`length`, value.KeysError, number},
		{`.[]`, value.KeysError, number},
		{`keys`, value.KeysString, twice},
		{`.a`, value.KeysString, twice},
	} {
		_, err := run1(t, raw(t, c, p), test.program, &Options{JSON: &value.JSONOptions{Keys: test.keys}}, nil)
		if f, ok := errors.AsType[*fault.Error](err); !ok || f.Offset != test.want {
			t.Errorf("%s: %v, want offset %#x", test.program, err, test.want)
		}
	}
}

// TestCounted adds ranges in any order.
func TestCounted(t *testing.T) {
	var c counted
	for _, r := range [][2]int64{{10, 20}, {40, 50}, {20, 30}, {5, 7}, {41, 42}, {0, 3}, {35, 60}} {
		if c.has(source.Range{Start: r[0], End: r[1]}) != (r == [2]int64{41, 42}) {
			t.Errorf("%v in %v", r, c)
		}
		c = c.add(source.Range{Start: r[0], End: r[1]})
	}
	if want := (counted{source.Range{Start: 0, End: 3}, source.Range{Start: 5, End: 7}, source.Range{Start: 10, End: 30}, source.Range{Start: 35, End: 60}}); !slices.Equal(c, want) {
		t.Errorf("%v, want %v", c, want)
	}
	if c.has(source.Range{Start: 3, End: 5}) || c.has(source.Range{Start: 29, End: 31}) || c.has(source.Range{Start: 8, End: 8}) || !c.has(source.Range{Start: 11, End: 30}) {
		t.Errorf("%v", c)
	}
}
