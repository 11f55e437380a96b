package fault

import "testing"

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                 "",
		"plain é 名":        "plain é 名",
		"a\nb\x1b[31m":     `a\u000ab\u001b[31m`,
		"c1 \u009b31m":     `c1 \u009b31m`,
		"line \u2028 sep":  `line \u2028 sep`,
		"broken \xff\x9b!": "broken \ufffd\ufffd!",
		"\x7f":             `\u007f`,
	} {
		if got := OneLine(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
