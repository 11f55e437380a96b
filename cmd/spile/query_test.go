package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestHeld has the beginning of a result kept back as long as it is short.
func TestHeld(t *testing.T) {
	short, long := strings.Repeat("s", 40<<10), strings.Repeat("l", 70<<10)
	for _, test := range []struct {
		writes    []string
		out, held string
	}{
		{[]string{"a", "b"}, "", "ab"},
		{[]string{short}, "", short},
		{[]string{long}, long, ""},
		{[]string{short, short, "z"}, short + short + "z", ""},
	} {
		var out bytes.Buffer
		h := held{out: &out}
		for _, text := range test.writes {
			if n, err := h.Write([]byte(text)); n != len(text) || err != nil {
				t.Fatalf("%d, %v", n, err)
			}
		}
		if out.String() != test.out || string(h.text) != test.held {
			t.Errorf("%d bytes out and %d held, want %d and %d", out.Len(), len(h.text), len(test.out), len(test.held))
		}
	}
}
