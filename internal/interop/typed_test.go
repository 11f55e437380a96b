package interop

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/spilehq/spile/value"
)

// Typed JSON (testdata/msglc/README.md of the repository) is the form in which values are exchanged and compared. In
// memory it is what encoding/json makes of it: nil, bool, string, json.Number, []any, and one-member objects for the
// other types.

func form(name string, arg any) any { return map[string]any{name: arg} }

func typedInt(n *big.Int) any {
	if n.CmpAbs(big.NewInt(1<<53)) < 0 {
		return json.Number(n.String())
	}
	return form("$int", n.String())
}

func typedFloat(f float64) any {
	bits := math.Float64bits(f)
	if math.IsNaN(f) {
		bits = 0x7ff8000000000000
	}
	return form("$f64", fmt.Sprintf("%016x", bits))
}

func number[T int | int64](n T) json.Number { return json.Number(strconv.FormatInt(int64(n), 10)) }

func typedTime(t time.Time) any {
	return form("$time", []any{number(t.Unix()), number(t.Nanosecond())})
}

func typedBytes(b []byte) any { return form("$bin", fmt.Sprintf("%x", b)) }

// typed returns the typed JSON of a Go value.
func typed(v any) any {
	switch v := v.(type) {
	case nil, bool, string:
		return v
	case int:
		return typedInt(big.NewInt(int64(v)))
	case int64:
		return typedInt(big.NewInt(v))
	case uint64:
		return typedInt(new(big.Int).SetUint64(v))
	case *big.Int:
		return typedInt(v)
	case float64:
		return typedFloat(v)
	case []byte:
		return typedBytes(v)
	case time.Time:
		return typedTime(v)
	case value.ExtValue:
		return form("$ext", []any{number(int64(v.Type)), fmt.Sprintf("%x", v.Data)})
	case value.TagValue:
		return form("$tag", []any{json.Number(strconv.FormatUint(v.Number, 10)), typed(v.Content)})
	case value.EncodedKey:
		t, err := typedRaw(value.Raw{Codec: v.Codec, Data: []byte(v.Data)})
		if err != nil {
			panic(err)
		}
		return t
	case []any:
		items := make([]any, len(v))
		for i, item := range v {
			items[i] = typed(item)
		}
		return items
	case value.OrderedMap:
		pairs := make([]any, len(v))
		for i, p := range v {
			pairs[i] = []any{typed(p.Key), typed(p.Value)}
		}
		return form("$map", pairs)
	case map[string]any:
		pairs := []any{}
		for k, item := range v {
			pairs = append(pairs, []any{k, typed(item)})
		}
		return form("$map", pairs)
	case map[any]any:
		pairs := []any{}
		for k, item := range v {
			pairs = append(pairs, []any{typed(k), typed(item)})
		}
		return form("$map", pairs)
	}
	panic(fmt.Sprintf("no typed JSON for %T", v))
}

// typedRaw returns the typed JSON of an encoded value, from its tokens.
func typedRaw(r value.Raw) (any, error) {
	s := value.NewScanner(r.Codec, r.Data, value.Limits{})
	if err := s.Next(); err != nil {
		return nil, err
	}
	return typedToken(s)
}

func typedToken(s *value.Scanner) (any, error) {
	next := func() (any, error) {
		if err := s.Next(); err != nil {
			return nil, err
		}
		return typedToken(s)
	}
	switch s.Kind {
	case value.Null:
		return nil, nil
	case value.Bool:
		return s.Bits != 0, nil
	case value.Uint:
		return typedInt(new(big.Int).SetUint64(s.Bits)), nil
	case value.Nint:
		return typedInt(new(big.Int).Not(new(big.Int).SetUint64(s.Bits))), nil
	case value.Float16, value.Float32, value.Float64:
		return typedFloat(s.Float()), nil
	case value.String:
		return string(s.Data), nil
	case value.Bytes:
		return typedBytes(s.Data), nil
	case value.Ext:
		if s.Ext == -1 {
			v, err := value.Decode(s.Codec(), value.AppendExt(nil, s.Codec(), s.Ext, s.Data), value.Limits{})
			if err != nil {
				return nil, err
			}
			return typed(v), nil
		}
		return form("$ext", []any{number(int64(s.Ext)), fmt.Sprintf("%x", s.Data)}), nil
	case value.Tag:
		n := s.Bits
		content, err := next()
		if err != nil {
			return nil, err
		}
		switch n {
		case 0:
			t, err := time.Parse(time.RFC3339Nano, content.(string))
			return typedTime(t), err
		case 2, 3:
			b, err := hex.DecodeString(content.(map[string]any)["$bin"].(string))
			i := new(big.Int).SetBytes(b)
			if n == 3 {
				i.Not(i)
			}
			return typedInt(i), err
		}
		return form("$tag", []any{json.Number(strconv.FormatUint(n, 10)), content}), nil
	case value.Array:
		items := []any{}
		for {
			if err := s.Next(); err != nil {
				return nil, err
			}
			if s.Kind == value.End {
				return items, nil
			}
			item, err := typedToken(s)
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
	case value.Map:
		pairs := []any{}
		for {
			if err := s.Next(); err != nil {
				return nil, err
			}
			if s.Kind == value.End {
				return form("$map", pairs), nil
			}
			key, err := typedToken(s)
			if err != nil {
				return nil, err
			}
			item, err := next()
			if err != nil {
				return nil, err
			}
			pairs = append(pairs, []any{key, item})
		}
	}
	return nil, fmt.Errorf("token of kind %s", s.Kind)
}

// text is the JSON text of typed JSON: what two values are compared by.
func text(t any) string {
	b, err := json.Marshal(t)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// sortedText is the text with the pairs of every map sorted, for Go maps, which have no order.
func sortedText(t any) string { return text(sorted(t)) }

func sorted(t any) any {
	switch t := t.(type) {
	case []any:
		items := make([]any, len(t))
		for i, item := range t {
			items[i] = sorted(item)
		}
		return items
	case map[string]any:
		pairs, ok := t["$map"].([]any)
		if !ok {
			return t
		}
		pairs = sorted(pairs).([]any)
		slices.SortFunc(pairs, func(a, b any) int {
			return cmp.Compare(text(a.([]any)[0]), text(b.([]any)[0]))
		})
		return form("$map", pairs)
	}
	return t
}

// same fails the test when two texts differ, and shows the place.
func same(t *testing.T, what, got, want string) bool {
	t.Helper()
	if got == want {
		return true
	}
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	from := max(0, i-40)
	t.Errorf("%s: at %d of %d (%d wanted)\n got  …%.120s\n want …%.120s", what, i, len(got), len(want), got[from:], want[from:])
	return false
}

// sameBytes fails the test when two files differ, and shows the place.
func sameBytes(t *testing.T, what string, got, want []byte) bool {
	t.Helper()
	if bytes.Equal(got, want) {
		return true
	}
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	from := max(0, i-8)
	t.Errorf("%s: byte %#x of %d (%d wanted)\n got  …% .40x\n want …% .40x", what, i, len(got), len(want), got[from:], want[from:])
	return false
}
