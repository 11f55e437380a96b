package tcb

import (
	"fmt"
	"testing"
)

// benchLen is the number of rows of the benchmarks: more than the caches of most processors hold.
const benchLen = 1 << 20

// benchColumns are columns whose best encoding is the one in their name, and some others of it.
func benchColumns() map[string]*Column {
	n := benchLen
	i32 := func(of func(i int) int32) *Column {
		c := &Column{Tag: 1, Type: Type{Element: I32}, Rows: n}
		c.setLen(n)
		for i := range n {
			c.Int32s[i] = of(i)
		}
		return c
	}
	random := func(i int) uint32 { return uint32(i) * 2654435761 >> 3 }
	text := &Column{Tag: 1, Type: Type{Element: String}, Rows: n}
	text.setLen(n)
	for i := range n {
		text.Strings[i] = fmt.Sprintf("Item_Name_%03d", random(i)%1000)
	}
	raw := &Column{Tag: 1, Type: Type{Element: F64}, Rows: n}
	raw.setLen(n)
	whole := &Column{Tag: 1, Type: Type{Element: F64}, Rows: n}
	whole.setLen(n)
	for i := range n {
		raw.Float64s[i] = float64(random(i)) / 3
		whole.Float64s[i] = float64(random(i) % 5000)
	}
	return map[string]*Column{
		"i32":    i32(func(i int) int32 { return int32(random(i) % 1000) }),
		"i32/up": i32(func(i int) int32 { return int32(i*3) + int32(random(i)%3) }),
		"string": text,
		"f64":    raw,
		"whole":  whole,
	}
}

func BenchmarkDecode(b *testing.B) {
	for name, c := range benchColumns() {
		choice := chooseColumn(c)
		for i, cand := range choice.tried {
			p := choice.writers[i](nil)
			b.Run(name+"/"+cand.Encoding.String(), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(c.Len()) * c.Type.Element.size())
				d := Descriptor{Tag: 1, Type: c.Type, Encoding: cand.Encoding}
				for b.Loop() {
					if _, err := decodeBlock(p, d, c.Rows, newBudget(1<<40), false); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
	b.Run("copy", func(b *testing.B) {
		b.ReportAllocs()
		p := make([]byte, 8*benchLen)
		b.SetBytes(8 * benchLen)
		for b.Loop() {
			q := make([]byte, len(p))
			copy(q, p)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	for name, c := range benchColumns() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(c.Len()) * c.Type.Element.size())
			for b.Loop() {
				encodeColumn(c)
			}
		})
	}
}
