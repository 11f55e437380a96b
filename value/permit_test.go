package value

import (
	"errors"
	"math/big"
	"strings"
	"testing"
)

func TestPermit(t *testing.T) {
	out := func(o *JSONOptions, data string) error {
		_, err := AppendJSON(nil, CBOR, unhex(t, data), Limits{}, o, nil)
		return err
	}
	in := func(c Codec, o *JSONReadOptions, text string) error {
		_, err := AppendFromJSON(nil, c, []byte(text), o, nil)
		return err
	}
	_, extErr := Transcode(nil, CBOR, Msgpack, unhex(t, "d405aa"), Limits{})
	_, undefinedErr := Transcode(nil, Msgpack, CBOR, unhex(t, "f7"), Limits{})
	_, tagErr := Append(nil, Msgpack, []any{TagValue{Number: 5}})
	_, bigErr := Append(nil, Msgpack, new(big.Int).Lsh(big.NewInt(1), 64))
	for name, c := range map[string]struct {
		err  error
		want Permit
	}{
		"NaN":             {out(nil, "f97e00"), PermitNonFinite},
		"text":            {out(nil, "61ff"), PermitInvalidUTF8},
		"key":             {out(nil, "a10102"), PermitKeys},
		"key in a key":    {out(&JSONOptions{Keys: KeysString}, "a1a1800100"), PermitKeys},
		"key twice":       {out(nil, "a2616101616102"), PermitDup},
		"undefined":       {out(&JSONOptions{Lossless: true}, "f7"), PermitLossless},
		"no value":        {out(nil, "ff"), ""},
		"JSON text":       {in(CBOR, nil, "\"\xff\""), PermitInvalidUTF8},
		"JSON surrogate":  {in(CBOR, nil, `"\ud800"`), PermitInvalidUTF8},
		"JSON key twice":  {in(CBOR, nil, `{"a":1,"a":2}`), PermitKeepDup},
		"JSON digits":     {in(CBOR, &JSONReadOptions{Lossless: true}, "0.10000000000000000001"), PermitLossless},
		"JSON integer":    {in(Msgpack, nil, "1"+strings.Repeat("0", 30)), PermitCodec},
		"JSON syntax":     {in(CBOR, nil, "{"), ""},
		"ext to CBOR":     {extErr, PermitCodec},
		"undefined to mp": {undefinedErr, PermitCodec},
		"tag":             {tagErr, PermitCodec},
		"big number":      {bigErr, PermitCodec},
	} {
		var p Permit
		if errors.As(c.err, &p); c.err == nil || p != c.want {
			t.Errorf("%s: %v permits %q, want %q", name, c.err, p, c.want)
		} else if strings.Contains(c.err.Error(), ": (") || strings.HasSuffix(c.err.Error(), ": ") {
			t.Errorf("%s: %v", name, c.err)
		}
	}
}
