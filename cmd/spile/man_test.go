package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestManPages holds the man pages to the help texts: no word of a verb's explanation or of its flags is lost.
func TestManPages(t *testing.T) {
	root := newRoot(new(env))
	for _, cmd := range verbs(root) {
		var words []string
		words = append(words, strings.Fields(cmd.Long)...)
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				word, usage := pflag.UnquoteUsage(f)
				words = append(append(words, word, "--"+f.Name), strings.Fields(usage)...)
			}
		})
		page, err := manPage(cmd)
		if err != nil {
			t.Fatal(err)
		}
		shown := strings.ReplaceAll(string(page), `\&`, "") // which is nothing, and keeps a dot from being a command
		for _, word := range words {
			if !strings.Contains(shown, strings.ReplaceAll(word, `\`, `\\`)) {
				t.Errorf("%s: %q is lost", cmd.Name(), word)
			}
		}
		for _, once := range []string{"(default 5)", "\\fB--retries\\fP \\fIN\\fP"} { // of a flag of every verb
			if n := strings.Count(string(page), once); n != 1 {
				t.Errorf("%s: has %q %d times", cmd.CommandPath(), once, n)
			}
		}
		for _, ugly := range []string{"[=", "\\fP=", "`", "(default [])"} {
			plain := strings.ReplaceAll(strings.ReplaceAll(string(page), cmd.Example, ""), `[=\fIMAX\fP]`, "")
			if strings.Contains(plain, ugly) {
				t.Errorf("%s: has %q", cmd.Name(), ugly)
			}
		}
	}
}
