package value

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/spilehq/spile/fault"
)

// drawIndefinite appends a random CBOR value of containers that are of definite length or not, of like keys, so that what
// guesses keys and what counts items meet.
func drawIndefinite(t *rapid.T, b []byte, depth int) []byte {
	kind := rapid.IntRange(0, 7).Draw(t, "kind")
	if depth == 0 {
		kind = min(kind, 2)
	}
	n := rapid.IntRange(0, 4).Draw(t, "n")
	open := rapid.Bool().Draw(t, "indefinite")
	switch kind {
	case 0:
		return AppendInt(b, CBOR, rapid.Int64().Draw(t, "int"))
	case 1:
		return AppendString(b, CBOR, "aaaaaaaaaaaaaaaaaaaaaaaaa"[:rapid.IntRange(0, 25).Draw(t, "text")])
	case 2:
		return AppendBool(b, CBOR, open)
	case 3, 4:
		if open {
			b = append(b, 0x9f)
		} else {
			b = AppendArrayHeader(b, CBOR, n)
		}
		for range n {
			b = drawIndefinite(t, b, depth-1)
		}
	default:
		if open {
			b = append(b, 0xbf)
		} else {
			b = AppendMapHeader(b, CBOR, n)
		}
		for i := range n {
			b = AppendString(b, CBOR, "abcd"[i:i+1])
			b = drawIndefinite(t, b, depth-1)
		}
	}
	if open {
		b = append(b, 0xff)
	}
	return b
}

// indented gives the JSON text by the slow path, without its indents.
func indented(p []byte) ([]byte, error) {
	text, err := AppendJSON(nil, CBOR, p, Limits{}, &JSONOptions{Pretty: true}, nil)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = json.Compact(&out, text)
	return out.Bytes(), err
}

// Containers of indefinite length inside of definite ones, and the other way round, come out the same by the fast path, by
// the slow one, over definite lengths, and as Go values; cut anywhere, or with a break too many, they come out by none.
func TestIndefiniteInside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Records behind one another teach the fast path their keys.
		p := AppendArrayHeader(nil, CBOR, 5)
		for range 4 {
			p = drawIndefinite(t, p, 4)
		}
		p = AppendString(p, CBOR, "aaaaaaaaaaaaaaaaaaaaaaaa")
		want, err := indented(p)
		if err != nil {
			t.Fatal(err)
		}
		got, err := AppendJSON(nil, CBOR, p, Limits{}, nil, nil)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("% x\ngives %s, %v\nwant  %s", p, got, err, want)
		}
		definite, err := Transcode(nil, CBOR, CBOR, p, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err = AppendJSON(nil, CBOR, definite, Limits{}, nil, nil); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("% x\nwith definite lengths gives %s, %v\nwant %s", p, got, err, want)
		}
		a, err := Decode(CBOR, p, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := Decode(CBOR, definite, Limits{})
		if err != nil || !reflect.DeepEqual(a, b) {
			t.Fatalf("% x\ndecodes to %v, with definite lengths to %v, %v", p, a, b, err)
		}
		if n, err := Skip(CBOR, p, 1, Limits{}); err != nil || n != len(p) {
			t.Fatalf("skips %d of %d, %v", n, len(p), err)
		}
		// A byte that is a break where it must not be, or is none where one must be.
		q := bytes.Clone(p)
		i := rapid.IntRange(0, len(q)-1).Draw(t, "at")
		q[i] = rapid.SampledFrom([]byte{0xff, 0x00, 0x80, 0x9f, 0xbf}).Draw(t, "byte")
		slow, slowErr := indented(q)
		fast, fastErr := AppendJSON(nil, CBOR, q, Limits{}, nil, nil)
		if (slowErr == nil) != (fastErr == nil) || slowErr == nil && !bytes.Equal(slow, fast) {
			t.Fatalf("% x\ngives %s, %v, and by the slow path %s, %v", q, fast, fastErr, slow, slowErr)
		}
		if _, err := Decode(CBOR, q, Limits{}); (err == nil) != (slowErr == nil) && !errors.Is(slowErr, fault.Invalid) && !errors.Is(slowErr, fault.Conflict) {
			t.Fatalf("% x\ndecodes with %v, and as JSON with %v", q, err, slowErr)
		}
	})
}

// A map of indefinite length that ends behind a key, where a map of definite length ended before.
func TestIndefiniteOdd(t *testing.T) {
	for hex, want := range map[string]string{
		"83a2616181016163 01 bf61618101 6163 ff 7061616161616161616161616161616161":          "",
		"83bf61618101 61639fff ff bf61618101 61639fff ff 7061616161616161616161616161616161": `[{"a":[1],"c":[]},{"a":[1],"c":[]},"aaaaaaaaaaaaaaaa"]`,
	} {
		got, err := AppendJSON(nil, CBOR, unhex(t, strings.ReplaceAll(hex, " ", "")), Limits{}, nil, nil)
		if want == "" != (err != nil) || err == nil && string(got) != want {
			t.Errorf("%s gives %s, %v, want %s", hex, got, err, want)
		}
	}
}
