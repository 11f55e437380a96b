package msglc

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestPathOfBytes demands of paths of keys of any bytes that their text is UTF-8, and that it leads back to the key.
func TestPathOfBytes(t *testing.T) {
	parts := []string{"a", "/", "~", "{", "}", `"`, `\`, "u", "dc", "ff", `\udcff`, `\ud83d`, `\u0041`, "\xff", "\x80", "\xed\xb3\xbf", "é", "\n", "😀", "\u2028", ""}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		var key strings.Builder
		for range 1 + r.IntN(6) {
			key.WriteString(parts[r.IntN(len(parts))])
		}
		text := Path{TextStep(key.String())}.String()
		if !utf8.ValidString(text) {
			t.Fatalf("%q: path %q", key.String(), text)
		}
		if !utf8.ValidString(key.String()) && strings.Contains(text, "\n") {
			t.Fatalf("%q: path %q", key.String(), text)
		}
		p, err := ParsePath(text)
		if err != nil || len(p) != 1 {
			t.Fatalf("%q: path %q: %d steps, %v", key.String(), text, len(p), err)
		}
		got := p[0].text
		if p[0].key.Data != nil {
			got, _ = stringKey(p[0].key)
		}
		if got != key.String() {
			t.Fatalf("%q: path %q leads to %q", key.String(), text, got)
		}
		if again := p.String(); again != text {
			t.Fatalf("%q: path %q becomes %q", key.String(), text, again)
		}
	}
	// A text step of such bytes finds the key too.
	file := []byte{0x81, 0xa2, 0xff, 'a', 0x01}
	r2 := open(t, withTOC(t, file, obj{p(0, 5)}), nil)
	for _, path := range []Path{{TextStep("\xffa")}, {parseStep(`{"\udcffa"}`)}} {
		if _, err := r2.Find(t.Context(), path); err != nil {
			t.Error(err)
		}
	}
}
