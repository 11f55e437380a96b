package tcb

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spilehq/spile/internal/wire"
	"github.com/spilehq/spile/source"
)

// Each kernel against its plain twin: a slot at a time, a number at a time.

func FuzzUnpack(f *testing.F) {
	for width := 1; width <= 64; width++ {
		for _, n := range []int{0, 1, 7, 8, 9, 64, 67, chunk, chunk + 3} {
			f.Add(byte(width), uint16(n), int64(width*n)-100, uint64(width))
		}
	}
	f.Fuzz(func(t *testing.T, width byte, count uint16, base int64, seed uint64) {
		if width < 1 || width > 64 {
			return
		}
		n := int(count % 5000)
		random := rand.New(rand.NewPCG(seed, 1))
		p := packed{width: int(width), base: base, bits: make([]byte, packedSize(n, int(width)))}
		for i := range p.bits {
			p.bits[i] = byte(random.Uint32())
		}
		plain := make([]int64, n)
		for i := range plain {
			plain[i] = base + int64(p.slot(i))
		}
		wide := make([]int64, n)
		if p.int64s(wide); !slices.Equal(wide, plain) {
			t.Fatalf("%d values of %d bits from %d on: %v, want %v", n, width, base, wide, plain)
		}
		tooWide := slices.IndexFunc(plain, func(x int64) bool { return x != int64(int32(x)) })
		narrow := make([]int32, n)
		err := p.int32s(narrow)
		if tooWide >= 0 {
			if want := fmt.Sprintf("the value %d, which", plain[tooWide]); err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("the error is %v, want one of %q", err, want)
			}
		} else if err != nil {
			t.Fatal(err)
		}
		bools := make([]bool, n)
		p.bools(bools)
		for i, x := range plain {
			if bools[i] != (x != 0) || tooWide < 0 && int64(narrow[i]) != x {
				t.Fatalf("value %d of %d bits from %d on: %v, %v, want %d", i, width, base, bools[i], narrow[i], x)
			}
		}
	})
}

// numbersAtOnce decodes numbers one after another.
func numbersAtOnce(p []byte, n int) (v []int32, used int, ok bool) {
	for range n {
		x, k := wire.Varint32(p[used:])
		if k <= 0 {
			return nil, 0, false
		}
		v, used = append(v, x), used+k
	}
	return v, used, true
}

func FuzzNumbers(f *testing.F) {
	random := rand.New(rand.NewPCG(2, 3))
	for _, longest := range []int{1, 2, 5} {
		for n := range 40 {
			var p []byte
			for range n {
				p = wire.AppendVarint32(p, int32(random.Uint32())>>(32-7*min(longest, 1+random.IntN(longest))+longest/5*3))
			}
			f.Add(p, uint16(n))
			f.Add(p, uint16(n+1))
		}
	}
	f.Fuzz(func(t *testing.T, p []byte, count uint16) {
		n := int(count % 3000)
		want, used, ok := numbersAtOnce(p, n)
		for _, enc := range []Encoding{Varint, Delta} {
			b := &block{p: p}
			s := b.ints(enc, n)
			got := make([]int32, n)
			half := n / 3
			err := s.fill(got[:half])
			if err == nil {
				err = s.fill(got[half:])
			}
			if (err == nil) != ok {
				t.Fatalf("%s: % x gives %v, and one by one %v", enc, p, err, ok)
			}
			if !ok {
				continue
			}
			if b.pos != used {
				t.Fatalf("%s: % x takes %d bytes, not %d", enc, p, b.pos, used)
			}
			sum := int32(0)
			for i, x := range want {
				if sum += x; enc == Varint {
					sum = x
				}
				if got[i] != sum {
					t.Fatalf("%s: value %d of % x is %d, want %d", enc, i, p, got[i], sum)
				}
			}
		}
	})
}

// The choice for bytes is that among the sizes of all forms.
func FuzzChooseBytes(f *testing.F) {
	random := rand.New(rand.NewPCG(4, 5))
	for n := range 200 {
		p := make([]byte, n*n/8)
		for i := range p {
			switch n % 4 {
			case 0:
				p[i] = byte(i * n)
			case 1:
				p[i] = byte(random.Uint32())
			case 2:
				p[i] = byte(i / n)
			case 3:
				if p[i] = 0xff; random.IntN(9) == 0 {
					p[i] = byte(random.Uint32())
				}
			}
		}
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		want, wantSize := sizesOf(p).least()
		if len(p) <= wantSize {
			want, wantSize = Raw, len(p)
		}
		if enc, size := chooseBytes(p); enc != want || size != wantSize {
			t.Fatalf("% x: %s of %d bytes, want %s of %d", p, enc, size, want, wantSize)
		}
	})
}

// Distinct values are found as a map finds them.
func TestIndexBits(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 7))
	for _, n := range []int{0, 1, 100, 5000, 300_000} {
		for _, of := range []uint64{1, 2, 600, 1 << 16, 1 << 63} {
			v := make([]uint64, n)
			for i := range v {
				v[i] = random.Uint64N(of) << (i % 3 * 20)
			}
			indexes, keys := indexBits(v, func(x uint64) uint64 { return x })
			seen := make(map[uint64]int32)
			for i, x := range v {
				if _, ok := seen[x]; !ok {
					seen[x] = int32(len(seen))
				}
				if indexes[i] != seen[x] || keys[indexes[i]] != x {
					t.Fatalf("value %d of %d: index %d, want %d", i, n, indexes[i], seen[x])
				}
			}
			all := sizesOf(indexes)
			if s := indexSizes(indexes); s.varint != all.varint || s.rle != all.rle {
				t.Fatalf("sizes %+v, want those of %+v", s, all)
			}
			if len(keys) != len(seen) {
				t.Fatalf("%d keys, want %d", len(keys), len(seen))
			}
		}
	}
}

// What is read is the reader's own, though values may stay where they were fetched.
func TestReadIsOwn(t *testing.T) {
	const n = 20_000
	c := &Column{Tag: 7, Type: Type{Element: F64}, Rows: n}
	c.setLen(n)
	random := rand.New(rand.NewPCG(8, 9))
	for i := range c.Float64s {
		c.Float64s[i] = random.Float64()
	}
	// As the fetched bytes and, behind a short one, not at a multiple of 8; alone and with others.
	for _, optional := range []bool{false, true} {
		d := *c
		if d.Type.Optional = optional; optional {
			d.Present = allPresent(n)
		}
		small := &Column{Tag: 1, Type: Type{Element: Bool}, Rows: n, Bools: make([]bool, n)}
		file, err := Append(nil, n, []*Column{small, &d}, nil)
		if err != nil {
			t.Fatal(err)
		}
		table, err := Open(t.Context(), source.Memory("m", slices.Clone(file)), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tags := range [][]int32{{7}, {7, 1}, {7, 7}, nil} {
			columns, err := table.Read(t.Context(), tags...)
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(columns, func(c *Column) bool { return c.Tag == 7 })
			if !slices.Equal(columns[at].Float64s, c.Float64s) {
				t.Fatalf("%v: the values are others", tags)
			}
			clear(columns[at].Float64s)
			for _, other := range columns[at+1:] {
				if other.Tag == 7 && !slices.Equal(other.Float64s, c.Float64s) {
					t.Fatalf("%v: columns share memory", tags)
				}
			}
		}
	}
}

// Columns keep nothing of the source: what a source in memory holds afterwards does not matter.
func TestColumnsOutliveSource(t *testing.T) {
	for _, v := range vectors(t, "*.json") {
		_, want, err := v.read()
		if err != nil {
			t.Fatal(err)
		}
		file := slices.Clone(v.file)
		table, err := Open(t.Context(), source.Memory("m", file), &Options{Keys: v.keys()})
		if err != nil {
			t.Fatal(err)
		}
		got, err := table.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range file {
			file[i] ^= 0xff
		}
		for i, c := range got {
			if !same(c, want[i]) {
				t.Errorf("%s: column %d has changed with the source", v.Name, c.Tag)
			}
		}
	}
	// Blocks that are fetched, not those that came with the descriptors.
	const n = 20_000
	var columns []*Column
	for e := range UUID + 1 {
		c := &Column{Tag: int32(e) + 1, Type: Type{Element: e, Optional: true}, Rows: n, Present: allPresent(n)}
		c.setLen(n)
		for i := range n {
			switch e {
			case Enum, I32:
				c.Int32s[i] = int32(hashBits(uint64(i)))
			case Bool:
				c.Bools[i] = hashBits(uint64(i))&1 != 0
			case I64:
				c.Int64s[i] = int64(hashBits(uint64(i)))
			case F32:
				c.Float32s[i] = 1 / float32(i+3)
			case F64:
				c.Float64s[i] = 1 / float64(i+3)
			case String:
				c.Strings[i] = strconv.FormatUint(hashBits(uint64(i)), 36)
			case UUID:
				c.UUIDs[i] = GUID{byte(i), byte(i >> 8)}
			}
		}
		columns = append(columns, c)
	}
	file, err := Append(nil, n, columns, nil)
	if err != nil {
		t.Fatal(err)
	}
	table := openFile(t, file)
	all, err := table.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := append([]*Column(nil), all...)
	for _, c := range columns {
		one, err := table.Read(t.Context(), c.Tag)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, one...)
	}
	clear(file)
	for _, c := range got {
		if !same(c, columns[c.Tag-1]) {
			t.Errorf("column %d has changed with the source", c.Tag)
		}
	}
}
