package value

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
)

// benchJSON is a list of records as they are in logs and exports: short strings, integers, floats, small lists.
func benchJSON(records int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	names := []string{"alpha", "Bravo", "charlie delta", "Ünïcode", "echo/foxtrot", `golf \"quoted\"`, "hôtel", "india"}
	b := []byte("[")
	for i := range records {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"id":%d,"name":"%s%d","active":%v,"score":%v,"ratio":%.3f,"count":%d,"tags":["%s","%s","t%d"],`,
			i, names[r.IntN(8)], r.IntN(1000), r.IntN(2) == 0, r.Float64()*100+0.001, r.Float64(), r.IntN(100000), names[r.IntN(8)], names[r.IntN(8)], r.IntN(100))
		b = fmt.Appendf(b, `"pos":{"x":%.2f,"y":%.2f,"z":%d},"samples":[%d,%d,%d,%d,%d],"note":null,"host":"web-%d.example.com","delta":%d}`,
			r.Float64()*1000, r.Float64()*1000, r.IntN(256), r.IntN(10), r.IntN(1000), r.IntN(100000), -r.IntN(100), r.IntN(50), r.IntN(64), r.IntN(1<<30)-1<<29)
	}
	return append(b, ']')
}

func benchEncoded(b *testing.B, c Codec) []byte {
	data, err := AppendFromJSON(nil, c, benchJSON(2000), nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	return data
}

func BenchmarkAppendJSON(b *testing.B) {
	for _, c := range []Codec{Msgpack, CBOR} {
		for _, o := range []struct {
			name string
			opts JSONOptions
		}{{"compact", JSONOptions{}}, {"pretty", JSONOptions{Pretty: true}}, {"last", JSONOptions{Dup: DupLast}}} {
			b.Run(c.String()+"/"+o.name, func(b *testing.B) {
				data := benchEncoded(b, c)
				var out []byte
				b.ReportAllocs()
				for b.Loop() {
					var err error
					if out, err = AppendJSON(out[:0], c, data, Limits{}, &o.opts, nil); err != nil {
						b.Fatal(err)
					}
				}
				b.SetBytes(int64(len(out)))
			})
		}
	}
}

func BenchmarkJSONWriterSection(b *testing.B) {
	data := benchEncoded(b, Msgpack)
	src := bytes.NewReader(data)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		w := NewJSONWriter(io.Discard, Limits{}, nil, nil)
		if err := w.WriteSection(Msgpack, src, 0, int64(len(data))); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendFromJSON(b *testing.B) {
	for _, c := range []Codec{Msgpack, CBOR} {
		b.Run(c.String(), func(b *testing.B) {
			text := benchJSON(2000)
			var out []byte
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if out, err = AppendFromJSON(out[:0], c, text, nil, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkReadJSON(b *testing.B) {
	text := benchJSON(20000) // long enough for the pre-scan
	src := bytes.NewReader(text)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if err := ReadJSON(io.Discard, src, int64(len(text)), Msgpack, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// TestJSONAllocations checks that nothing is allocated for a token: there are 20,000 of them. What a call needs is
// pooled, but under the race detector a pool forgets at random.
func TestJSONAllocations(t *testing.T) {
	text := benchJSON(500)
	data, err := AppendFromJSON(nil, Msgpack, text, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	if n := testing.AllocsPerRun(20, func() { out, _ = AppendJSON(out[:0], Msgpack, data, Limits{}, nil, nil) }); n > 200 {
		t.Errorf("AppendJSON: %v allocations", n)
	}
	if n := testing.AllocsPerRun(20, func() { out, _ = AppendFromJSON(out[:0], Msgpack, text, nil, nil) }); n > 200 {
		t.Errorf("AppendFromJSON: %v allocations", n)
	}
}
