package msglc

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spilehq/spile/value"
)

const vectorDir = "../testdata/msglc"

// vector is one conformance case, see the README beside them.
type vector struct {
	Name    string        `json:"-"`
	File    *string       `json:"file"`
	Size    int64         `json:"size"`
	SHA256  string        `json:"sha256"`
	Codec   string        `json:"codec"`
	Options vectorOptions `json:"options"`
	Offset  int64         `json:"offset"`
	Header  struct {
		Bytes    string `json:"bytes"`
		TOCStart int64  `json:"toc_start"`
		TOCSize  int64  `json:"toc_size"`
	} `json:"header"`
	TOC       any           `json:"toc"`
	Children  []vectorChild `json:"children"`
	Value     any           `json:"value"`
	Reads     [][2]any      `json:"reads"`
	Cost      [][2]int64    `json:"cost"`
	Errors    [][2]any      `json:"errors"`
	Writer    *vectorWriter `json:"writer"`
	OpenError string        `json:"open_error"`
	First64   string        `json:"first_64_bytes"`
	TOCSHA256 string        `json:"toc_sha256"`
}

type vectorChild struct {
	Name   any    `json:"name"`
	Start  int64  `json:"start"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

type vectorOptions struct {
	Threshold int64 `json:"small_obj_optimization_threshold"`
	Trivial   int64 `json:"trivial_size"`
	Magic     any   `json:"magic"`
}

type vectorWriter struct {
	Op      string         `json:"op"`
	Exact   bool           `json:"exact"`
	Codec   string         `json:"codec"`
	Options *vectorOptions `json:"options"`
	Value   any            `json:"value"`
	Base    *vectorWriter  `json:"base"`
	Parts   []struct {
		Name    *string      `json:"name"`
		Archive vectorWriter `json:"archive"`
	} `json:"parts"`
	hasValue bool
}

func (w *vectorWriter) UnmarshalJSON(p []byte) error {
	type plain vectorWriter
	if err := unmarshalNumbers(p, (*plain)(w)); err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	err := json.Unmarshal(p, &fields)
	_, w.hasValue = fields["value"]
	return err
}

func unmarshalNumbers(p []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(p))
	d.UseNumber()
	return d.Decode(v)
}

func loadVectors(t testing.TB) []vector {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(vectorDir, "*.json"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no vectors in %s: %v", vectorDir, err)
	}
	var all []vector
	for _, name := range names {
		p, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		v := vector{Name: strings.TrimSuffix(filepath.Base(name), ".json")}
		if err := unmarshalNumbers(p, &v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, v)
	}
	return all
}

// bytes returns the file of the vector.
func (v *vector) bytes(t testing.TB) []byte {
	t.Helper()
	p, err := os.ReadFile(filepath.Join(vectorDir, *v.File))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// codecOf gives a codec by its name in the vectors.
func codecOf(t testing.TB, name string) value.Codec {
	t.Helper()
	switch name {
	case "msgpack":
		return value.Msgpack
	case "cbor":
		return value.CBOR
	}
	t.Fatalf("unknown codec %q", name)
	return 0
}

func (o *vectorOptions) write(c value.Codec) *WriteOptions {
	if o == nil {
		return &WriteOptions{Codec: c}
	}
	w := &WriteOptions{Codec: c, Threshold: o.Threshold, Trivial: o.Trivial}
	if o.Magic != nil {
		w.Magic = typedValue(o.Magic).([]byte)
	}
	return w
}

// typedValue gives the Go value of typed JSON, maps as [value.OrderedMap]. What it cannot read is a mistake in a file
// of the tests, so it panics.
func typedValue(x any) any {
	switch x := x.(type) {
	case json.Number:
		return typedInt(string(x))
	case []any:
		list := make([]any, len(x))
		for i := range x {
			list[i] = typedValue(x[i])
		}
		return list
	case map[string]any:
		if len(x) != 1 {
			panic(fmt.Sprintf("typed JSON with %d keys: %v", len(x), x))
		}
		for form, arg := range x {
			return typedForm(form, arg)
		}
	}
	return x
}

func typedInt(s string) any {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		return n
	}
	n, ok := new(big.Int).SetString(s, 10)
	if !ok {
		panic("typed JSON with the integer " + s)
	}
	return n
}

func typedForm(form string, arg any) any {
	args, _ := arg.([]any)
	num := func(i int) int64 { return typedValue(args[i]).(int64) }
	switch form {
	case "$int":
		return typedInt(arg.(string))
	case "$f64":
		bits, err := strconv.ParseUint(arg.(string), 16, 64)
		if err != nil {
			panic(err)
		}
		return math.Float64frombits(bits)
	case "$bin":
		return unhex(arg)
	case "$rbin":
		return bytes.Repeat(unhex(args[0]), int(num(1)))
	case "$rstr":
		return strings.Repeat(args[0].(string), int(num(1)))
	case "$map":
		m := value.OrderedMap{}
		for _, pair := range args {
			p := pair.([]any)
			m = append(m, value.Pair{Key: typedValue(p[0]), Value: typedValue(p[1])})
		}
		return m
	case "$time":
		return time.Unix(num(0), num(1)).UTC()
	case "$ext":
		return value.ExtValue{Type: int8(num(0)), Data: unhex(args[1])}
	case "$tag":
		return value.TagValue{Number: uint64(num(0)), Content: typedValue(args[1])}
	case "$undefined":
		return value.UndefinedValue{}
	case "$range", "$frange":
		list := []any{}
		for i := num(0); i < num(1); i += num(2) {
			if form == "$frange" {
				list = append(list, float64(i))
			} else {
				list = append(list, i)
			}
		}
		return list
	case "$repeat", "$cycle":
		items := []any{args[0]}
		if form == "$cycle" {
			items = args[0].([]any)
		}
		list := make([]any, num(1))
		for i := range list {
			list[i] = typedValue(items[i%len(items)])
		}
		return list
	case "$kvrange", "$kvconst":
		m := value.OrderedMap{}
		for i := num(1); i < num(2); i++ {
			v := any(i)
			if form == "$kvconst" {
				v = typedValue(args[3])
			}
			m = append(m, value.Pair{Key: args[0].(string) + strconv.FormatInt(i, 10), Value: v})
		}
		return m
	}
	panic("typed JSON of the form " + form)
}

func unhex(x any) []byte {
	p, err := hex.DecodeString(x.(string))
	if err != nil {
		panic(err)
	}
	return p
}

// appendTyped encodes what typedValue gives, by the small Append functions only.
func appendTyped(dst []byte, c value.Codec, v any) []byte {
	var err error
	switch v := v.(type) {
	case nil:
		return value.AppendNull(dst, c)
	case bool:
		return value.AppendBool(dst, c, v)
	case int64:
		return value.AppendInt(dst, c, v)
	case uint64:
		return value.AppendUint(dst, c, v)
	case *big.Int:
		dst, err = value.AppendBigInt(dst, c, v)
	case float64:
		return value.AppendFloat64(dst, c, v)
	case string:
		return value.AppendString(dst, c, v)
	case []byte:
		return value.AppendBytes(dst, c, v)
	case time.Time:
		dst, err = value.AppendTimestamp(dst, c, v)
	case value.ExtValue:
		return value.AppendExt(dst, c, v.Type, v.Data)
	case value.TagValue:
		return appendTyped(value.AppendTag(dst, c, v.Number), c, v.Content)
	case value.UndefinedValue:
		return value.AppendUndefined(dst, c)
	case []any:
		dst = value.AppendArrayHeader(dst, c, len(v))
		for _, x := range v {
			dst = appendTyped(dst, c, x)
		}
	case value.OrderedMap:
		dst = value.AppendMapHeader(dst, c, len(v))
		for _, p := range v {
			dst = appendTyped(appendTyped(dst, c, p.Key), c, p.Value)
		}
	default:
		panic(fmt.Sprintf("no encoding of %T", v))
	}
	if err != nil {
		panic(err)
	}
	return dst
}

// archiveOf returns the archive of a payload.
func archiveOf(t testing.TB, payload []byte, o *WriteOptions) []byte {
	t.Helper()
	var b buffer
	w, err := NewWriter(t.Context(), &b, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(payload); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b
}

func hash(p []byte) string {
	sum := sha256.Sum256(p)
	return hex.EncodeToString(sum[:])
}
