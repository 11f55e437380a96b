package msglc

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// The payloads of the benchmarks, by what a writer does with them.
var benchPayloads = map[string]func(c value.Codec, size int) []byte{
	// A map of lists and records: text, numbers, nested maps and lists of all sizes.
	"mixed": func(c value.Codec, size int) []byte {
		r := rand.New(rand.NewPCG(1, 2))
		var parts [][]byte
		for n := 0; n < size; {
			var p []byte
			p = value.AppendString(p, c, fmt.Sprintf("section %d", len(parts)))
			switch len(parts) % 4 {
			case 0:
				p = value.AppendArrayHeader(p, c, 2000)
				for i := range 2000 {
					p = appendRecord(p, c, r, i)
				}
			case 1:
				p = value.AppendArrayHeader(p, c, 20000)
				for range 20000 {
					p = value.AppendFloat64(p, c, r.Float64())
				}
			case 2:
				p = value.AppendArrayHeader(p, c, 50000)
				for range 50000 {
					p = value.AppendInt(p, c, int64(r.Uint64()>>(40+r.IntN(24)))-2000)
				}
			case 3:
				p = value.AppendMapHeader(p, c, 500)
				for i := range 500 {
					p = value.AppendString(p, c, fmt.Sprintf("key-%d", i))
					p = value.AppendArrayHeader(p, c, 20)
					for k := range 20 {
						p = appendRecord(p, c, r, k)
					}
				}
			}
			n += len(p)
			parts = append(parts, p)
		}
		out := value.AppendMapHeader(nil, c, len(parts))
		for _, p := range parts {
			out = append(out, p...)
		}
		return out
	},
	"records": func(c value.Codec, size int) []byte { return repeatItem(c, size, appendRecord) },
	"small ints": func(c value.Codec, size int) []byte {
		return repeatItem(c, size, func(p []byte, c value.Codec, r *rand.Rand, i int) []byte {
			return value.AppendInt(p, c, int64(i%100))
		})
	},
	"ints": func(c value.Codec, size int) []byte {
		return repeatItem(c, size, func(p []byte, c value.Codec, r *rand.Rand, i int) []byte {
			return value.AppendInt(p, c, int64(r.Uint64()>>(40+r.IntN(24))))
		})
	},
	"flat map": func(c value.Codec, size int) []byte {
		var body []byte
		n := 0
		for ; len(body) < size; n++ {
			body = value.AppendString(body, c, fmt.Sprintf("key-%d", n))
			body = value.AppendInt(body, c, int64(n))
		}
		return append(value.AppendMapHeader(nil, c, n), body...)
	},
	// Every map is somewhat larger than the threshold: the worst that still makes sense.
	"large maps": func(c value.Codec, size int) []byte {
		return repeatItem(c, size, func(p []byte, c value.Codec, r *rand.Rand, i int) []byte {
			p = value.AppendMapHeader(p, c, 60)
			for k := range 60 {
				p = value.AppendString(p, c, fmt.Sprintf("field-%d", k))
				p = appendRecord(p, c, r, k)
			}
			return p
		})
	},
}

func repeatItem(c value.Codec, size int, item func([]byte, value.Codec, *rand.Rand, int) []byte) []byte {
	r := rand.New(rand.NewPCG(3, 4))
	var body []byte
	n := 0
	for ; len(body) < size; n++ {
		body = item(body, c, r, n)
	}
	return append(value.AppendArrayHeader(nil, c, n), body...)
}

func appendRecord(p []byte, c value.Codec, r *rand.Rand, i int) []byte {
	p = value.AppendMapHeader(p, c, 8)
	p = value.AppendInt(value.AppendString(p, c, "id"), c, int64(i))
	p = value.AppendString(value.AppendString(p, c, "name"), c, fmt.Sprintf("item number %d", r.IntN(1e6)))
	p = value.AppendFloat64(value.AppendString(p, c, "score"), c, r.Float64())
	p = value.AppendBool(value.AppendString(p, c, "active"), c, i%2 == 0)
	p = value.AppendNull(value.AppendString(p, c, "parent"), c)
	p = value.AppendArrayHeader(value.AppendString(p, c, "tags"), c, 3)
	for _, s := range []string{"red", "green", "a longer tag"} {
		p = value.AppendString(p, c, s)
	}
	p = value.AppendMapHeader(value.AppendString(p, c, "at"), c, 2)
	p = value.AppendFloat64(value.AppendString(p, c, "x"), c, r.Float64())
	p = value.AppendFloat64(value.AppendString(p, c, "y"), c, r.Float64())
	return value.AppendString(value.AppendString(p, c, "note"), c, "the quick brown fox jumps over the lazy dog"[:r.IntN(43)])
}

// nowhere is a target that keeps nothing.
type nowhere struct{}

func (nowhere) Write(p []byte) (int, error)            { return len(p), nil }
func (nowhere) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

func BenchmarkIndex(b *testing.B) {
	for _, c := range []value.Codec{value.Msgpack, value.CBOR} {
		for _, name := range []string{"mixed", "records", "small ints", "ints", "flat map", "large maps"} {
			b.Run(fmt.Sprintf("%s/%s", c, name), func(b *testing.B) {
				payload := benchPayloads[name](c, 64<<20)
				obj := source.Memory(name, payload)
				b.SetBytes(int64(len(payload)))
				b.ReportAllocs()
				for b.Loop() {
					if err := Index(b.Context(), nowhere{}, obj, &WriteOptions{Codec: c}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkDump(b *testing.B) {
	v := make([]any, 20000)
	for i := range v {
		v[i] = map[string]any{
			"id": i, "name": fmt.Sprintf("item number %d", i), "score": float64(i) / 3, "active": i%2 == 0, "parent": nil,
			"tags": []string{"red", "green", "a longer tag"}, "at": map[string]any{"x": 1.5, "y": 2.5},
		}
	}
	p, err := Dumps(v, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Dumps(v, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSalvage(b *testing.B) {
	payload := benchPayloads["mixed"](value.Msgpack, 64<<20)
	file, err := archive(payload, nil)
	if err != nil {
		b.Fatal(err)
	}
	obj := source.Memory("cut.msg", file[:len(payload)*3/4])
	b.SetBytes(obj.Size())
	for b.Loop() {
		if _, err := Salvage(b.Context(), nowhere{}, obj, nil); err != nil {
			b.Fatal(err)
		}
	}
}
