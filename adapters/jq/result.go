package jq

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// Result is one result of a run. It is good until the next one is asked for.
type Result struct {
	run   *run
	value any
}

// WriteJSON writes the result as JSON text, without a line break behind it. One that stands in the document is copied
// out of it, in bounded memory.
func (r Result) WriteJSON(w io.Writer) error {
	if p, ok := r.value.(*place); ok && !p.decoded {
		n, err := p.list(r.run.ctx)
		if err != nil {
			return err
		}
		if err := r.run.allow(n); err != nil {
			return err
		}
		if rng, ok := n.Range(); ok && rng.Len() <= r.run.sizes.line {
			return r.run.once(func() source.Range { return rng }, func() error { return r.run.writeShort(w, n, rng.Start) })
		}
		return r.run.write(n, w, r.run.json)
	}
	v, err := r.Value()
	if err != nil {
		return err
	}
	encoded, err := appendValue(nil, v, r.run.limits.Depth)
	if err != nil {
		return err
	}
	text := value.NewJSONWriter(w, r.run.limits, r.run.json, r.run.loss)
	text.At("computed result", 0)
	err = text.WriteValue(value.NewScanner(value.CBOR, encoded, r.run.limits))
	if f, ok := err.(*fault.Error); ok { // its offset is one in the encoding that was made here
		c := *f
		err = c.At(fault.NoOffset)
	}
	if err != nil {
		return err
	}
	return text.Flush()
}

// writeShort writes a short value, which lies at base in the object. It does what [msglc.Node.WriteJSON] does, with one
// writer for all: of the results of a program there may be very many.
func (r *run) writeShort(w io.Writer, n msglc.Node, base int64) error {
	raw, err := n.Raw(r.ctx)
	if err != nil {
		return err
	}
	if r.lines == nil {
		r.lines = value.NewJSONWriter(&r.line, r.limits, r.json, r.loss)
	}
	r.line.Reset()
	r.lines.At("", base)
	r.scan.Reset(raw.Codec, raw.Data, r.limits)
	if err := r.lines.WriteValue(&r.scan); err != nil {
		return err
	}
	if err := r.lines.Flush(); err != nil {
		return err
	}
	_, err = w.Write(bytes.TrimPrefix(r.line.Bytes(), []byte("\n"))) // what stands between the values of a writer
	return err
}

// Value returns the result as gojq has it: nil, bool, int, *big.Int, float64, [json.Number], string, []any or
// map[string]any. It must not be changed.
func (r Result) Value() (any, error) {
	if p, ok := r.value.(*place); ok {
		return p.decode()
	}
	return r.value, nil
}

// Text returns the text of a result that is a string, and false for any other. It does not decode a list or a map.
func (r Result) Text() (string, bool, error) {
	if p, ok := r.value.(*place); ok {
		if shape, err := p.shape(); err != nil || shape != value.Invalid {
			return "", false, err
		}
	}
	v, err := r.Value()
	s, ok := v.(string)
	return s, ok, err
}

// appendValue encodes a value of gojq, so that the one JSON writer that there is can print it. CBOR has integers of any
// size.
func appendValue(dst []byte, v any, depth int) ([]byte, error) {
	const c = value.CBOR
	switch v := v.(type) {
	case nil:
		return value.AppendNull(dst, c), nil
	case bool:
		return value.AppendBool(dst, c, v), nil
	case int:
		return value.AppendInt(dst, c, int64(v)), nil
	case *big.Int:
		return value.AppendBigInt(dst, c, v)
	case float64:
		return value.AppendFloat64(dst, c, v), nil
	case json.Number:
		return appendNumber(dst, v.String())
	case string:
		return value.AppendString(dst, c, v), nil
	}
	if depth <= 0 {
		return nil, fault.New(fault.Limit, "jq", "the result is nested too deep")
	}
	var err error
	switch v := v.(type) {
	case []any:
		dst = value.AppendArrayHeader(dst, c, len(v))
		for _, item := range v {
			if dst, err = appendValue(dst, item, depth-1); err != nil {
				return nil, err
			}
		}
		return dst, nil
	case map[string]any:
		dst = value.AppendMapHeader(dst, c, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if dst, err = appendValue(value.AppendString(dst, c, name), v[name], depth-1); err != nil {
				return nil, err
			}
		}
		return dst, nil
	}
	return nil, fmt.Errorf("jq: result of type %T", v)
}

func appendNumber(dst []byte, text string) ([]byte, error) {
	if !strings.ContainsAny(text, ".eE") {
		if n, ok := new(big.Int).SetString(text, 10); ok {
			return value.AppendBigInt(dst, value.CBOR, n)
		}
	}
	f, err := strconv.ParseFloat(text, 64) // beyond its range it gives an infinity, which the options decide on
	if err != nil && f == 0 {
		return nil, fault.New(fault.Invalid, "jq", "%q is no number", text)
	}
	return value.AppendFloat64(dst, value.CBOR, f), nil
}
