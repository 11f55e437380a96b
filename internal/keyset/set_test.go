package keyset

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"testing"

	"github.com/spilehq/spile/fault"
)

// small makes every way through a set short.
var small = Limits{Exact: 40 * (EntrySize + 8), Reread: 40 * (EntrySize + 8), Filter: 1 << 10, Suspects: 50}

// step is what an owner does with a set: begin, end or add.
type step struct {
	op  byte // 'b', 'e', 'a'
	key string
}

// run plays steps, and returns the indexes of those keys that came twice; it goes on behind one that Add found. The
// first one of a second look ends it.
func run(s *Set, steps []step, again bool) (twice []int, err error) {
	maps := []*Map{new(Map)}
	s.Begin(maps[0], -1)
	look := func(upTo int) error {
		err := s.LookUp(func(look *Set) error {
			found, err := run(look, steps[:upTo], true)
			if len(found) > 0 {
				return &Twice{Key: []byte(steps[found[0]].key), Offset: int64(found[0])}
			}
			return err
		})
		return err
	}
	for i, st := range steps {
		top := maps[len(maps)-1]
		switch st.op {
		case 'b':
			m := new(Map)
			s.Begin(m, int64(i))
			maps = append(maps, m)
		case 'e':
			err = s.End(top)
			maps = maps[:len(maps)-1]
		case 'a':
			var e *Entry
			if e, err = s.Add(top, []byte(st.key), int64(i)); e != nil {
				twice = append(twice, i)
			}
			if err == nil && !again && s.Full() {
				err = look(i + 1)
			}
		}
		if err != nil {
			return twice, err
		}
	}
	for i := len(maps) - 1; i >= 0; i-- {
		if err := s.End(maps[i]); err != nil {
			return twice, err
		}
	}
	return twice, look(len(steps))
}

// script makes steps over maps that are nested at random, and says which keys come twice.
func script(r *rand.Rand, spread int) (steps []step, twice map[int]bool) {
	twice = make(map[int]bool)
	open := []map[string]bool{{}}
	next := 0
	for i := range 3000 {
		top := open[len(open)-1]
		switch n := r.IntN(200); {
		case n < 5 && len(open) < 20:
			open = append(open, map[string]bool{})
			steps = append(steps, step{op: 'b'})
		case n < 8 && len(open) > 1:
			open = open[:len(open)-1]
			steps = append(steps, step{op: 'e'})
		default:
			next++
			key := fmt.Sprint(next)
			if spread > 0 && r.IntN(spread) == 0 {
				key = fmt.Sprint(r.IntN(next + 1))
			}
			twice[i] = top[key]
			top[key] = true
			steps = append(steps, step{'a', key})
		}
	}
	return steps, twice
}

// TestSet compares sets of all modes with Go maps.
func TestSet(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 0))
	for range 60 {
		steps, twice := script(r, []int{0, 20, 1000, 4000}[r.IntN(4)])
		var first, all []int
		for i := range steps {
			if twice[i] {
				if all = append(all, i); first == nil {
					first = all
				}
			}
		}
		var s Set
		if found, err := run(&s, steps, false); err != nil || fmt.Sprint(found) != fmt.Sprint(all) {
			t.Fatalf("exact: %v, %v, want %v", found, err, all)
		}
		if len(s.entries) != 0 || len(s.text) != 0 || s.inTables != 0 {
			t.Fatalf("left over: %d entries, %d bytes, %d of tables", len(s.entries), len(s.text), s.inTables)
		}
		for _, mode := range []Mode{Reread, Log} {
			for range 2 { // a set that is used again
				s.SetLimits(small)
				s.Reset(mode)
				found, err := run(&s, steps, false)
				var tw *Twice
				if errors.As(err, &tw) {
					if !twice[int(tw.Offset)] || steps[tw.Offset].key != string(tw.Key) {
						t.Fatalf("mode %d: %v at %d", mode, tw, tw.Offset)
					}
				} else if err != nil || fmt.Sprint(found) != fmt.Sprint(all) {
					t.Fatalf("mode %d: %v, %v, want %v", mode, found, err, all)
				}
				if s.Reset(mode); s.log.file != nil || s.log.size() != 0 {
					t.Fatal("log is left over")
				}
			}
		}
	}
}

// TestExactLimit: a set that can look nowhere else is bounded.
func TestExactLimit(t *testing.T) {
	var s Set
	s.SetLimits(small)
	var m Map
	s.Begin(&m, 0)
	for i := range 100 {
		if _, err := s.Add(&m, fmt.Append(nil, i), int64(i)); err != nil {
			if !errors.Is(err, fault.Limit) || i < SmallMap {
				t.Fatal(i, err)
			}
			return
		}
	}
	t.Error("no limit")
}

// TestLongLog: keys that go to the file, and are read back from it and from memory.
func TestLongLog(t *testing.T) {
	for _, again := range []int{-1, 0, 5000, 99_998} {
		s := Set{}
		s.SetLimits(Limits{Exact: 1 << 10, Filter: 1 << 16, Suspects: 1 << 10})
		s.SetMode(Log)
		var outer, m Map
		s.Begin(&outer, -1)
		for i := range 1000 {
			if _, err := s.Add(&outer, fmt.Appendf(nil, "%0100d", i), 0); err != nil {
				t.Fatal(err)
			}
		}
		s.Begin(&m, 7)
		var err error
		for i := range 100_000 {
			n := i
			if i == 99_999 && again >= 0 {
				n = again
			}
			if _, err = s.Add(&m, fmt.Appendf(nil, "%0100d", n), int64(-i)); err != nil {
				break
			}
		}
		if s.log.base < 1<<20 {
			t.Fatalf("%d bytes in the file", s.log.base)
		}
		if err == nil {
			err = s.End(&m)
		}
		tw, _ := err.(*Twice)
		if again < 0 && err != nil || again >= 0 && (tw == nil || tw.Offset != -99_999 || string(tw.Key) != fmt.Sprintf("%0100d", again)) {
			t.Errorf("%d again: %v", again, err)
		}
		if err := s.End(&outer); err != nil {
			t.Error(err)
		}
	}
}

func TestSecond(t *testing.T) {
	var s second
	hashes := []uint64{1, 2, 2, 77, 1 << 40}
	s.set(hashes)
	for _, c := range []struct {
		hash uint64
		id   int64
		key  string
		want bool
	}{
		{5, 0, "a", false}, {5, 0, "a", false}, // none
		{1, 0, "a", false}, {1, 0, "b", false}, {1, 0, "c", false}, {1, 0, "b", true}, {1, 0, "a", true}, // one hash, three keys
		{1, 1, "a", false}, {1, 1, "a", true}, // of another map
		{2, 0, "a", false}, {2, 0, "a", true}, {77, 0, "", false}, {77, 0, "", true}, {1 << 40, 0, "x", false},
	} {
		if got := s.twice(c.hash, c.id, []byte(c.key)); got != c.want {
			t.Errorf("%d %q: %v, want %v", c.hash, c.key, got, c.want)
		}
	}
	if s.over {
		t.Error("over")
	}
	s.set(hashes)
	big := make([]byte, maxSuspectBytes)
	if s.twice(1, 0, big); s.over {
		t.Error("one key of any size has room")
	}
	if s.twice(2, 0, big); !s.over {
		t.Error("two have not")
	}
	s.set(hashes[:1])
	for i := range 100 { // a set of one is never too large, but for keys of one hash without end
		if s.twice(1, int64(i), nil); s.over && i < 10 {
			t.Fatal(i)
		}
	}
}

// TestFilter checks that the filter never forgets, and how often it is wrong.
func TestFilter(t *testing.T) {
	var s Set
	const n = 1 << 20
	seed := maphash.MakeSeed()
	var b [8]byte
	hash := func(i int) uint64 {
		for j := range b {
			b[j] = byte(i >> (8 * j))
		}
		return mix(maphash.Bytes(seed, b[:]), 5)
	}
	wrong := 0
	for i := range n {
		if s.addFilter(hash(i)) {
			wrong++
		}
	}
	if wrong > 10 {
		t.Errorf("%d of %d keys are suspects", wrong, n)
	}
	for i := range 1000 {
		if !s.addFilter(hash(i * 1000)) {
			t.Errorf("key %d is not found", i*1000)
		}
	}
}

// TestMemoryCountsAll: what a set keeps for its next use counts too.
func TestMemoryCountsAll(t *testing.T) {
	var s Set
	var m Map
	s.Begin(&m, 1)
	for i := range 100_000 {
		if _, err := s.Add(&m, fmt.Appendf(nil, "key %d", i), 0); err != nil {
			t.Fatal(err)
		}
	}
	open := s.Memory()
	if err := s.End(&m); err != nil {
		t.Fatal(err)
	}
	if closed := s.Memory(); closed != open || closed-cap(s.text)-EntrySize*cap(s.entries) < 4*100_000 {
		t.Errorf("%d bytes with the map open, %d with its table free", open, closed)
	}
	before := s.Memory()
	s.looks.set(make([]uint64, 1000))
	if got := s.Memory() - before; got < 1000*suspectSize {
		t.Errorf("a second look takes %d bytes", got)
	}
}
