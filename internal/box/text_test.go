package box

import "testing"

func TestText(t *testing.T) {
	p := []byte("the text of bytes")
	for end := range len(p) + 1 {
		if got, want := Text(p[4:max(4, end)]), string(p[4:max(4, end)]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := Text(nil); got != "" {
		t.Errorf("%q of no bytes", got)
	}
}
