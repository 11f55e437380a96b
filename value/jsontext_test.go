package value

import (
	"errors"
	"math"
	"testing"

	"github.com/spilehq/spile/fault"
)

// TestJSONTextWithoutOptions: nil options are the zero options, and a value that stands nowhere has no offset.
func TestJSONTextWithoutOptions(t *testing.T) {
	for _, o := range []*JSONOptions{nil, {}} {
		if out, lost, err := AppendJSONFloat(nil, 0.5, 64, o); string(out) != "0.5" || lost || err != nil {
			t.Errorf("%s, %v, %v", out, lost, err)
		}
		if out, lost, err := AppendJSONString(nil, "é\n", o); string(out) != `"é\n"` || lost || err != nil {
			t.Errorf("%s, %v, %v", out, lost, err)
		}
		_, _, err := AppendJSONFloat(nil, math.NaN(), 64, o)
		if e, ok := errors.AsType[*fault.Error](err); !ok || !errors.Is(err, fault.Invalid) || e.Offset != fault.NoOffset {
			t.Errorf("NaN: %v", err)
		}
		_, _, err = AppendJSONString(nil, "a\xff", o)
		if e, ok := errors.AsType[*fault.Error](err); !ok || !errors.Is(err, fault.Corrupt) || e.Offset != fault.NoOffset {
			t.Errorf("not UTF-8: %v", err)
		}
	}
	// In a document they have one.
	for _, data := range []string{"\x92\x01\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", "\x92\x01\xa1\xff"} {
		_, err := AppendJSON(nil, Msgpack, []byte(data), Limits{}, nil, nil)
		if e, ok := errors.AsType[*fault.Error](err); !ok || e.Offset != 2 {
			t.Errorf("% x: %v", data, err)
		}
	}
}
