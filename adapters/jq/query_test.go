package jq

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/itchyny/gojq"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// target is a document in memory that is being written.
type target struct{ data []byte }

func (t *target) Write(p []byte) (int, error) { t.data = append(t.data, p...); return len(p), nil }

func (t *target) WriteAt(p []byte, off int64) (int, error) {
	if end := int(off) + len(p); end > len(t.data) {
		t.data = append(t.data, make([]byte, end-len(t.data))...)
	}
	return copy(t.data[off:], p), nil
}

func document(t testing.TB, c value.Codec, payload []byte, o msglc.WriteOptions) []byte {
	t.Helper()
	var dst target
	o.Codec = c
	w, err := msglc.NewWriter(t.Context(), &dst, &o)
	if err == nil {
		_, err = w.Write(payload)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return dst.data
}

func open(t testing.TB, data []byte, o *msglc.Options) *msglc.Reader {
	t.Helper()
	r, err := msglc.Open(context.Background(), source.Memory("run.msg", data), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// fromJSON is the encoding of a JSON text.
func fromJSON(t testing.TB, c value.Codec, text string) []byte {
	t.Helper()
	v, err := ParseValue(text)
	if err != nil {
		t.Fatal(err)
	}
	data, err := appendValue(nil, v, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if c == value.CBOR {
		return data
	}
	return toMsgpack(t, data)
}

// toMsgpack writes plain CBOR, of definite lengths, as msgpack.
func toMsgpack(t testing.TB, data []byte) []byte {
	var out []byte
	s := value.NewScanner(value.CBOR, data, value.Limits{})
	for {
		err := s.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		const c = value.Msgpack
		switch s.Kind {
		case value.Null:
			out = value.AppendNull(out, c)
		case value.Bool:
			out = value.AppendBool(out, c, s.Bits != 0)
		case value.Uint:
			out = value.AppendUint(out, c, s.Bits)
		case value.Nint:
			out = value.AppendInt(out, c, -1-int64(s.Bits))
		case value.Float64:
			out = value.AppendFloat64(out, c, math.Float64frombits(s.Bits))
		case value.String:
			out = value.AppendString(out, c, string(s.Data))
		case value.Array:
			out = value.AppendArrayHeader(out, c, s.Len)
		case value.Map:
			out = value.AppendMapHeader(out, c, s.Len)
		case value.End:
		default:
			t.Fatalf("no %s here", s.Kind)
		}
	}
}

var testVariables = map[string]any{
	"x": "a", "i": 1, "j": 2, "f": json.Number("1.5"), "o": map[string]any{"start": 0, "end": 1},
}

// outcome is what a program does: its results as canonical JSON, and its error.
type outcome struct {
	results []string
	err     string
}

func (o outcome) String() string { return strings.Join(o.results, "\n") + "\nerror: " + o.err }

const maxResults = 200

// plainly runs a program with gojq alone over the document that its JSON text has given.
func plainly(ctx context.Context, program string, document any, o *value.JSONOptions) (out outcome) {
	ast, err := gojq.Parse(program)
	if err != nil {
		return outcome{err: err.Error()}
	}
	var names []string
	var values []any
	for name, v := range testVariables {
		names, values = append(names, "$"+name), append(values, v)
	}
	code, err := gojq.Compile(ast, gojq.WithVariables(names))
	if err != nil {
		return outcome{err: err.Error()}
	}
	results := code.RunWithContext(ctx, document, values...)
	for len(out.results) < maxResults {
		v, ok := results.Next()
		if !ok {
			return out
		}
		if err, ok := v.(error); ok {
			var halt *gojq.HaltError
			if !errors.As(err, &halt) || halt.Value() != nil {
				out.err = err.Error()
			}
			return out
		}
		encoded, err := appendValue(nil, v, 1000)
		if err == nil {
			encoded, err = value.AppendJSON(nil, value.CBOR, encoded, value.Limits{}, o, nil)
		}
		if err != nil {
			out.err = errUnprintable
			return out
		}
		out.results = append(out.results, canonical(encoded))
	}
	return out
}

const errUnprintable = "a result that cannot be printed"

func canonical(text []byte) string {
	v, err := ParseValue(string(text))
	if err != nil {
		return "not JSON: " + string(text)
	}
	out, _ := gojq.Marshal(v)
	return string(out)
}

// ours runs a program with this package.
func ours(ctx context.Context, program string, n msglc.Node, o *value.JSONOptions, s sizes) (out outcome) {
	q, err := Compile(program, &Options{JSON: o, Variables: testVariables})
	if err != nil {
		return outcome{err: cause(err)}
	}
	q.sizes = s
	for r, err := range q.Run(ctx, n, nil) {
		if err != nil {
			out.err = cause(err)
			return out
		}
		var text bytes.Buffer
		if err := r.WriteJSON(&text); err != nil {
			out.err = errUnprintable
			return out
		}
		if out.results = append(out.results, canonical(text.Bytes())); len(out.results) == maxResults {
			return out
		}
	}
	return out
}

// cause is the text of the error of gojq in err.
func cause(err error) string {
	var f *fault.Error
	if errors.As(err, &f) && f.Err != nil {
		return f.Err.Error()
	}
	return err.Error()
}

// random makes random values, in one encoding.
type random struct {
	*rand.Rand
	codec value.Codec
	odd   bool // with what JSON has no form for
}

func (g random) append(dst []byte, depth int) []byte {
	c := g.codec
	if g.odd && g.IntN(8) == 0 {
		return g.appendOdd(dst, depth)
	}
	kind := g.IntN(16)
	if depth <= 0 {
		kind = g.IntN(10)
	} else if depth >= 3 {
		kind = 10 + g.IntN(6)
	}
	switch kind {
	case 0:
		return value.AppendNull(dst, c)
	case 1:
		return value.AppendBool(dst, c, g.IntN(2) == 0)
	case 2, 3:
		return value.AppendInt(dst, c, int64(g.IntN(4)))
	case 4:
		switch g.IntN(5) {
		case 0:
			return value.AppendInt(dst, c, int64(g.Uint64()))
		case 1:
			return value.AppendUint(dst, c, g.Uint64()|1<<63)
		case 2:
			if c == value.CBOR {
				n := new(big.Int).Lsh(big.NewInt(g.Int64()-1<<62), uint(g.IntN(200)))
				out, _ := value.AppendBigInt(dst, c, n)
				return out
			}
		}
		return value.AppendInt(dst, c, -int64(g.IntN(1000)))
	case 5, 6:
		switch g.IntN(6) {
		case 0:
			return value.AppendFloat64(dst, c, float64(g.IntN(5)-2))
		case 1:
			return value.AppendFloat32(dst, c, float32(g.NormFloat64()))
		case 2:
			return value.AppendFloat32(dst, c, float32(math.Ldexp(g.Float64()-0.5, g.IntN(200)-100)))
		case 3:
			return value.AppendFloat64(dst, c, math.Ldexp(g.Float64()-0.5, g.IntN(1000)-500))
		}
		return value.AppendFloat64(dst, c, g.NormFloat64())
	case 7, 8:
		return value.AppendString(dst, c, []string{"", "a", "b", "id", "ä\n\"", "a b", strings.Repeat("long ", 30)}[g.IntN(7)])
	case 9:
		switch {
		case g.IntN(2) == 0:
			return value.AppendBytes(dst, c, []byte("bytes")[:g.IntN(6)])
		case c == value.Msgpack && g.IntN(2) == 0:
			out, _ := value.AppendTimestamp(dst, c, time.Unix(g.Int64N(1e9), g.Int64N(1e9)))
			return out
		case c == value.Msgpack:
			return value.AppendExt(dst, c, 7, []byte("ext"))
		}
		return g.append(value.AppendTag(dst, c, []uint64{100, 55799}[g.IntN(2)]), min(depth, 1))
	case 10, 11, 12:
		n := g.IntN(5)
		if g.IntN(4) == 0 {
			n = g.IntN(60)
		}
		dst = value.AppendArrayHeader(dst, c, n)
		inside := depth - 1
		if n > 8 {
			inside = min(inside, 1)
		}
		for range n {
			dst = g.append(dst, inside)
		}
		return dst
	}
	keys := []string{"a", "b", "c", "d", "e", "id", "runs", "energy", "a b", ""}
	g.Shuffle(len(keys), func(i, k int) { keys[i], keys[k] = keys[k], keys[i] })
	keys = keys[:g.IntN(len(keys))]
	dst = value.AppendMapHeader(dst, c, len(keys))
	for _, key := range keys {
		switch {
		case g.odd && g.IntN(12) == 0:
			dst = g.append(dst, 0)
		case g.odd && g.IntN(8) == 0:
			dst = value.AppendString(dst, c, "a")
		default:
			dst = value.AppendString(dst, c, key)
		}
		switch {
		case key == "id":
			dst = value.AppendInt(dst, c, int64(g.IntN(3)))
		case key == "runs" && g.IntN(2) == 0:
			n := g.IntN(4)
			dst = value.AppendArrayHeader(dst, c, n)
			for i := range n {
				dst = value.AppendMapHeader(dst, c, 2)
				dst = value.AppendInt(value.AppendString(dst, c, "id"), c, int64(i))
				dst = value.AppendString(dst, c, "energy")
				m := g.IntN(40)
				dst = value.AppendArrayHeader(dst, c, m)
				for range m {
					dst = value.AppendFloat64(dst, c, g.NormFloat64())
				}
			}
		default:
			dst = g.append(dst, depth-1)
		}
	}
	return dst
}

func (g random) appendOdd(dst []byte, depth int) []byte {
	c := g.codec
	switch g.IntN(6) {
	case 0:
		return value.AppendFloat64(dst, c, []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[g.IntN(3)])
	case 1:
		return value.AppendFloat32(dst, c, float32(math.Inf(-1)))
	case 2:
		if c == value.Msgpack {
			return append(dst, 0xa2, 'a', 0xff)
		}
		return append(dst, 0x62, 'a', 0xff)
	case 3:
		if c == value.CBOR {
			return value.AppendUndefined(dst, c)
		}
	case 4:
		if c == value.CBOR {
			return append(dst, 0xf9, byte(g.IntN(256)), byte(g.IntN(256))) // 16 bits
		}
	case 5:
		if c == value.CBOR { // of indefinite length
			dst = append(dst, 0x9f)
			for range g.IntN(3) {
				dst = g.append(dst, min(depth-1, 1))
			}
			return append(dst, 0xff)
		}
	}
	return value.AppendNull(dst, c)
}

// TestPushDownProperty compares programs over documents with gojq over the text of the documents.
func TestPushDownProperty(t *testing.T) {
	for seed := range seeds(24) {
		g := random{Rand: rand.New(rand.NewPCG(seed, 1)), codec: value.Msgpack + value.Codec(seed%2)}
		threshold := []int64{1, 16, 100, 8192}[g.IntN(4)]
		data := document(t, g.codec, g.append(nil, 4), msglc.WriteOptions{Threshold: threshold, Trivial: 1 + g.Int64N(min(threshold, 20))})
		r := open(t, data, &msglc.Options{CacheBytes: int64(g.IntN(2)) - 1})
		s := defaultSizes
		if g.IntN(2) == 0 {
			s.container = 0
		}
		comparePrograms(t, r.Root(), &value.JSONOptions{}, s)
	}
}

// TestOptionsProperty does so for values that need the options of the text: keys that are not strings or occur twice,
// text that is not UTF-8, NaN, kinds that JSON has not. A document with a table of contents cannot have all of them.
func TestOptionsProperty(t *testing.T) {
	for seed := range seeds(30) {
		g := random{Rand: rand.New(rand.NewPCG(seed, 2)), codec: value.Msgpack + value.Codec(seed%2), odd: true}
		r, err := msglc.OpenRaw(t.Context(), source.Memory("run", g.append(nil, 4)), g.codec, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		s := defaultSizes
		if g.IntN(2) == 0 {
			s = sizes{container: 0, preview: defaultSizes.preview, raw: g.Int64N(100), line: g.Int64N(50)}
		}
		comparePrograms(t, r.Root(), &value.JSONOptions{
			NonFinite: value.NonFiniteNull + value.NonFiniteMode(g.IntN(2)), InvalidUTF8: value.UTF8Replace,
			Keys: value.KeysString + value.KeyMode(g.IntN(2)), Dup: value.DupFirst + value.DupMode(g.IntN(3)),
		}, s)
	}
}

// TestCombinedProperty does so for archives of archives, of both codecs.
func TestCombinedProperty(t *testing.T) {
	for seed := range seeds(18) {
		g := random{Rand: rand.New(rand.NewPCG(seed, 4))}
		named := seed%2 == 0
		var parts []msglc.Part
		for i, name := range []string{"runs", "b", "a"}[:1+g.IntN(3)] {
			g.codec = value.Msgpack + value.Codec(i%2)
			data := document(t, g.codec, g.append(nil, 3), msglc.WriteOptions{Threshold: 16, Trivial: 4})
			if !named {
				name = ""
			}
			parts = append(parts, msglc.Part{Name: name, Object: source.Memory("part", data)})
		}
		var dst target
		if err := msglc.Combine(t.Context(), &dst, parts, &msglc.CombineOptions{Named: named}); err != nil {
			t.Fatal(err)
		}
		s := defaultSizes
		if g.IntN(2) == 0 {
			s = sizes{raw: s.raw, preview: s.preview}
		}
		comparePrograms(t, open(t, dst.data, nil).Root(), &value.JSONOptions{}, s)
	}
}

func seeds(n uint64) uint64 {
	if testing.Short() {
		return n / 6
	}
	return n
}

func comparePrograms(t *testing.T, n msglc.Node, o *value.JSONOptions, s sizes) {
	t.Helper()
	var text bytes.Buffer
	if err := n.WriteJSON(t.Context(), &text, o, nil); err != nil {
		t.Fatal(err)
	}
	document, err := parse(bytes.NewReader(text.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range programs {
		want := plainly(t.Context(), program, document, o)
		got := ours(t.Context(), program, n, o, s)
		if got.String() != want.String() {
			t.Errorf("%s\nof %.1000s\ngot\n%.2000s\nwant\n%.2000s", program, text.Bytes(), got, want)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

// withTOC puts a table of contents behind a payload.
func withTOC(payload, toc []byte) []byte {
	file := append(make([]byte, msglc.MagicSize-len(msglc.DefaultMagic)), msglc.DefaultMagic...)
	for _, n := range []int{len(payload), len(toc)} {
		number := value.AppendUint(nil, value.Msgpack, uint64(n))
		file = append(append(file, make([]byte, 10-len(number))...), number...)
	}
	return append(append(file, payload...), toc...)
}

// combinedOf makes a combined list of archives by their offsets in the payload.
func combinedOf(payload []byte, offsets ...uint64) []byte {
	const c = value.Msgpack
	toc := value.AppendArrayHeader(value.AppendString(value.AppendMapHeader(nil, c, 1), c, "t"), c, len(offsets))
	for _, at := range offsets {
		toc = value.AppendUint(toc, c, at)
	}
	return withTOC(payload, toc)
}

// sharing is a list of n values that all are the text of the payload, or, as a map, pairs with keys in no order.
func sharing(n int, asMap bool) []byte {
	const c = value.Msgpack
	text := value.AppendString(nil, c, strings.Repeat("x", 100))
	node := func(dst []byte, from, to int) []byte {
		dst = value.AppendArrayHeader(value.AppendString(dst, c, "p"), c, 2)
		return value.AppendUint(value.AppendUint(dst, c, uint64(from)), c, uint64(to))
	}
	payload := append([]byte{0xdc, 0, byte(n)}, text...)
	toc := value.AppendString(node(value.AppendMapHeader(nil, c, 2), 0, len(payload)), c, "t")
	if asMap {
		payload[0], toc = 0xde, value.AppendMapHeader(toc, c, n)
	} else {
		toc = value.AppendArrayHeader(toc, c, n)
	}
	for i := range n {
		if asMap {
			toc = value.AppendString(toc, c, string(rune('z'-i)))
		}
		toc = node(value.AppendMapHeader(toc, c, 1), 3, len(payload))
	}
	return withTOC(payload, toc)
}

// TestOverlap decodes archives that share their bytes, and some that do not.
func TestOverlap(t *testing.T) {
	const c = value.Msgpack
	small := document(t, c, value.AppendInt(value.AppendString(value.AppendMapHeader(nil, c, 1), c, "a"), c, 1), msglc.WriteOptions{})
	inner := combinedOf(append(small[:len(small):len(small)], small...), 0, uint64(len(small)))
	honest := combinedOf(append(inner[:len(inner):len(inner)], small...), uint64(len(inner)), 0)
	hostile := small
	for range 13 {
		hostile = combinedOf(hostile, make([]uint64, 10)...)
	}
	for _, test := range []struct {
		file          []byte
		program, want string
	}{
		{honest, `[.]|length`, "1"},
		{honest, `tojson`, `"[{\"a\":1},[{\"a\":1},{\"a\":1}]]"`},
		{honest, `.[:2]|tojson`, `"[{\"a\":1},[{\"a\":1},{\"a\":1}]]"`},
		{hostile, `[.]|tojson`, ""},
		{hostile, `.[1:5]|tojson`, ""},
		{hostile, `[.[]]|tojson`, ""},
		{hostile, `.[][][][][][][]|0`, ""},
		{honest, `[.[]|length]`, "[1,2]"},
		{honest, `[.[-1:][][].a]`, "[1,1]"},
		{sharing(1, false), `[.[]|length]`, "[100]"},
		{sharing(9, false), `.[]|length`, ""},
		{sharing(9, false), `[.[2:][]|length]`, ""},
		{sharing(9, true), `.[]|length`, ""},
	} {
		q, err := Compile(test.program, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := open(t, test.file, nil)
		var got bytes.Buffer
		var failed error
		for result, err := range q.Run(t.Context(), r.Root(), nil) {
			if err == nil {
				err = result.WriteJSON(&got)
			}
			failed = errors.Join(failed, err)
		}
		if f, ok := errors.AsType[*fault.Error](failed); ok && (f.Offset < 0 || f.Where == "") {
			t.Errorf("%s: %v, without offset or path", test.program, f)
		}
		if test.want == "" && !errors.Is(failed, fault.Corrupt) || test.want != "" && (failed != nil || got.String() != test.want) {
			t.Errorf("%s: %.200s, error %v", test.program, &got, failed)
		}
	}
}

// TestOverlapPlace pins the place that is told of children that overlap.
func TestOverlapPlace(t *testing.T) {
	hostile := document(t, value.Msgpack, value.AppendInt(nil, value.Msgpack, 1), msglc.WriteOptions{})
	for range 4 {
		hostile = combinedOf(hostile, make([]uint64, 10)...)
	}
	for program, want := range map[string]string{
		`[.]|tojson`:           "jq: 0/0/0/2: children overlap: more bytes to decode than the archive has (offset 0xfa)",
		`.[3][-4]|tojson`:      "jq: 3/-4/0/2: children overlap: more bytes to decode than the archive has (offset 0xfa)",
		`.[1:][][2:][1:] | 0`:  "jq: 2: children overlap: they have more bytes than the list or map around them (offset 0x32)",
		`.[2]|.[4:][1:][][][]`: "jq: 2/5/0/2: children overlap: they have more bytes than the list or map around them (offset 0xc8)",
	} {
		r := open(t, hostile, nil)
		q, err := Compile(program, nil)
		if err != nil {
			t.Fatal(err)
		}
		for result, err := range q.Run(t.Context(), r.Root(), nil) {
			if err == nil {
				err = result.WriteJSON(io.Discard)
			}
			if err != nil && err.Error() != want {
				t.Errorf("%s: %v, want %s", program, err, want)
			}
		}
	}
}

// TestDepthAcrossArchives nests lists and maps as deep as allowed and one deeper: some in each of several archives in one another,
// some in the innermost value.
func TestDepthAcrossArchives(t *testing.T) {
	const c, limit = value.Msgpack, 40
	for _, innermost := range []int{0, 1, 4} {
		for _, asMap := range []int{0, 1, 2, 3} { // which of the levels of an archive is a map
			for more := range 2 {
				inner := value.AppendInt(nil, c, 1)
				for range innermost {
					inner = append(value.AppendArrayHeader(nil, c, 1), inner...)
				}
				file := document(t, c, inner, msglc.WriteOptions{})
				for left := limit - innermost + more; left > 0; left -= 6 {
					var toc []byte
					for i := range min(6, left) {
						toc = value.AppendString(value.AppendMapHeader(toc, c, 1), c, "t")
						if i%4 == asMap {
							toc = value.AppendString(value.AppendMapHeader(toc, c, 1), c, "k")
						} else {
							toc = value.AppendArrayHeader(toc, c, 1)
						}
					}
					file = withTOC(file, value.AppendInt(toc, c, 0))
				}
				o := &msglc.Options{Limits: value.Limits{Depth: limit}}
				for _, program := range []string{".", "tojson|length|.>1", "[.]|.[0]|.", "[..]|last"} {
					q, err := Compile(program, &Options{Limits: value.Limits{Depth: limit}})
					if err != nil {
						t.Fatal(err)
					}
					r := open(t, file, o)
					if _, err := r.Root().Value(t.Context()); (err == nil) != (more == 0) {
						t.Fatalf("%d more: %v", more, err)
					}
					var failed error
					for result, err := range q.Run(t.Context(), r.Root(), nil) {
						if err == nil {
							err = result.WriteJSON(io.Discard)
						}
						failed = errors.Join(failed, err)
					}
					if (failed == nil) != (more == 0) || failed != nil && !errors.Is(failed, fault.Limit) {
						t.Errorf("%s, map %d, innermost %d, %d more: %v", program, asMap, innermost, more, failed)
					}
				}
			}
		}
	}
}

// TestMixed runs programs over documents that list values and archives under one node.
func TestMixed(t *testing.T) {
	const c = value.Msgpack
	ints := func(n ...int64) []byte {
		p := value.AppendArrayHeader(nil, c, len(n))
		for _, i := range n {
			p = value.AppendInt(p, c, i)
		}
		return p
	}
	child := document(t, c, ints(1, 2), msglc.WriteOptions{})
	// [7, <archive>], and [[7, <archive>], <archive>] around it: payload, and t with a node for each.
	inner := append([]byte{0x92, 0x07}, child...)
	payload := append([]byte{0x92}, inner...)
	archive := int64(len(payload))
	payload = append(payload, child...)
	node := func(from, to int64, t ...[]byte) []byte {
		p := value.AppendMapHeader(nil, c, 1+min(len(t), 1))
		p = append(value.AppendString(p, c, "p"), ints(from, to)...)
		if len(t) > 0 {
			p = value.AppendArrayHeader(value.AppendString(p, c, "t"), c, len(t))
			p = append(p, bytes.Join(t, nil)...)
		}
		return p
	}
	offset := func(n int64) []byte { return value.AppendInt(nil, c, n) }
	file := withTOC(payload, node(0, int64(len(payload)),
		node(1, archive, node(2, 3), offset(3)),
		offset(archive)))
	for _, o := range []*msglc.Options{nil, {CacheBytes: -1}} {
		for program, want := range map[string]string{
			".":               "[[7,[1,2]],[1,2]]\n",
			"[..]":            "[[[7,[1,2]],[1,2]],[7,[1,2]],7,[1,2],1,2,[1,2],1,2]\n",
			". == 1":          "false\n",
			".[0]":            "[7,[1,2]]\n",
			".[0][1][1]":      "2\n",
			".[][]":           "7\n[1,2]\n1\n2\n",
			".[1:]":           "[[1,2]]\n",
			"map(length)":     "[2,2]\n",
			".[0] |= length":  "[2,[1,2]]\n",
			"[.[][0]] | add":  "8\n",
			"{a: .} | tojson": "\"{\\\"a\\\":[[7,[1,2]],[1,2]]}\"\n",
		} {
			got, err := run1(t, open(t, file, o).Root(), program, nil, nil)
			if err != nil || got != want {
				t.Errorf("%s: %s, %v, want %s", program, got, err, want)
			}
		}
	}
}
