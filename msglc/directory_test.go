package msglc

import (
	"errors"
	"fmt"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/value"
)

// TestKeyTwice: of a key that occurs twice the last counts in a table that is checked whole when it is opened, the
// first in a longer one, whatever was looked for before. Verify reports it in both.
func TestKeyTwice(test *testing.T) {
	payload := value.AppendArrayHeader(nil, value.Msgpack, 0)
	payload = append(payload, make([]byte, 200<<10)...) // what lies in it is of no interest, but that it is long
	leaf := func(at int64) obj { return obj{p(at, at+1)} }
	for _, long := range []int{3, 20_000} {
		for _, where := range []string{"front", "middle", "end"} {
			many := make([]any, long)
			for i := range many {
				many[i] = leaf(map[string]int64{"front": 15, "middle": 5, "end": 0}[where])
			}
			giant := func(start, end int64) value.Pair { return kv("giant", obj{p(start, end), t(many)}) }
			table := obj{kv("a", leaf(1)), giant(5, 10), kv("b", leaf(10)), kv("a", leaf(11))}
			if where == "front" {
				table = obj{kv("a", leaf(1)), kv("a", leaf(11)), giant(12, 20), kv("b", leaf(20))}
			} else if where == "end" {
				table = obj{giant(0, 1), kv("a", leaf(1)), kv("b", leaf(3)), kv("a", leaf(11))}
			}
			file := withTOC(test, payload, obj{p(0, int64(len(payload))), t(table)})
			want := int64(1)
			if long == 3 {
				want = 11
			}
			for _, before := range [][]string{nil, {"a"}, {"b"}, {"none"}, {"giant", "a"}} {
				r := open(test, file, nil)
				if r.eager != (long == 3) {
					test.Fatalf("table of %d bytes, eager %v", r.h.tocSize, r.eager)
				}
				for _, name := range before {
					r.Find(test.Context(), SplitPath(name))
				}
				n, err := r.Find(test.Context(), SplitPath("a"))
				if err != nil || n.e.start != want {
					test.Errorf("%d, %s, after %v: value at %d, error %v, want %d", long, where, before, n.e.start, err, want)
				}
			}
			found := 0
			err := open(test, file, nil).Verify(test.Context(), nil, func(f Finding) {
				if errors.Is(f.Err, fault.Conflict) {
					found++
				}
			})
			if found != 1 || err != nil {
				test.Errorf("%d, %s: verify found %d keys that occur twice, %v", long, where, found, err)
			}
		}
	}
}

// TestOneKeyManyTimes: a key that fills the table takes few slots, and a lookup of it passes over nothing behind the
// first.
func TestOneKeyManyTimes(test *testing.T) {
	const count = 32_000
	payload := value.AppendMapHeader(nil, value.Msgpack, count)
	var table obj
	for range count {
		payload = append(payload, 0xa1, 'a', 0x91)
		at := int64(len(payload)) - 1
		payload = append(payload, 7)
		table = append(table, kv("a", obj{p(at, at+2)}))
	}
	table = append(table, kv("z", obj{p(1, 2)}))
	r := open(test, withTOC(test, payload, obj{p(0, int64(len(payload))), t(table)}), nil)
	n, err := r.Find(test.Context(), SplitPath("a/0"))
	if v, err2 := n.Value(test.Context()); err != nil || err2 != nil || v != int64(7) {
		test.Fatal(v, err, err2)
	}
	d := r.directory(&r.root)
	if k := d.known.Load(); k.next != 1 {
		test.Errorf("a lookup of the first key came by %d children", k.next)
	}
	if _, err := r.Find(test.Context(), SplitPath("none")); !errors.Is(err, fault.NotFound) {
		test.Error(err)
	}
	if k := d.known.Load(); k.next != count+1 || k.keys.used > sameHash+1 {
		test.Errorf("%d children take %d slots", k.next, k.keys.used)
	}
	if n, err = r.Find(test.Context(), SplitPath("a")); err != nil || n.e.start != 5 {
		test.Errorf("the value at %d, %v, want the first", n.e.start, err)
	}
	if n, err = r.Find(test.Context(), SplitPath("z")); err != nil || n.e.start != 1 {
		test.Errorf("the value at %d, %v", n.e.start, err)
	}
}

// TestKeyTableFull fills the table with keys whose hash bits are all equal: the answers are those of a pass.
func TestKeyTableFull(test *testing.T) {
	var table obj
	for i := range 40 {
		table = append(table, kv(fmt.Sprint(i%30), obj{p(int64(i+1), int64(i+2))}))
	}
	file := withTOC(test, make([]byte, 100), obj{p(0, 100), t(table)})
	for _, eager := range []bool{true, false} {
		r := open(test, file, nil)
		r.eager = eager
		c, d := r.cursor(test.Context(), 0), r.directory(&r.root)
		if _, err := r.extend(c, d, 39, nil); err != nil {
			test.Fatal(err)
		}
		k := *d.known.Load()
		k.keys = keyTable{}
		for i := range int64(40) {
			k.keys.add(5<<32, i, eager)
		}
		if k.keys.used != sameHash {
			test.Errorf("%d slots", k.keys.used)
		}
		for i := range 31 {
			want := int64(i)
			switch {
			case i == 30:
				want = -1
			case i < 10 && eager:
				want += 30
			}
			key := canonicalKey(nil, value.Msgpack, value.AppendString(nil, value.Msgpack, fmt.Sprint(i)))
			if got, err := r.match(c, d, &k, 5<<32, key); err != nil || got != want {
				test.Errorf("eager %v, key %d: child %d, %v, want %d", eager, i, got, err, want)
			}
		}
	}
}
