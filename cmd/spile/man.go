package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/spilehq/spile/fault"
)

func newMan(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the man pages into a folder",
		Long:    "Man writes a man page for each verb into the folder DIR, which must exist: spile.1, spile-get.1 and so on.",
		Example: `  mkdir -p man1 && spile man man1`,
		Args:    arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.man(cmd.Root(), args[0])
		},
	}
}

func (e *env) man(root *cobra.Command, dir string) error {
	root.Long = strings.Replace(root.Long, "\n\n"+filled(exitHelp), "", 1) // that is a section of each page
	for _, cmd := range verbs(root) {
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
		page, err := manPage(cmd)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), page, 0o666)
		}
		if err != nil {
			return fault.New(nil, "", "man pages").In(dir).Because(bare(err))
		}
	}
	return nil
}

// verbs are a command and the verbs below it that help shows.
func verbs(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			all = append(all, verbs(sub)...)
		}
	}
	return all
}

// verbList is a section of a man page.
func verbList(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("\n\n# VERBS\n")
	for _, group := range root.Groups() {
		for _, verb := range root.Commands() {
			if verb.GroupID == group.ID && verb.IsAvailableCommand() {
				fmt.Fprintf(&b, "**%s**\n\t%s\n\n", verb.Name(), verb.Short)
			}
		}
	}
	return b.String()
}

// manFlag is the line of a flag as cobra writes it: with its default, and the default of a bool in brackets.
var manFlag = regexp.MustCompile(`(?m)^((?:\\fB-\w\\fP, )?\\fB--([\w-]+)\\fP).*$`)

// manWord is the annotation of a flag that is in the words of man pages already, with the word that it takes.
const manWord = "man"

// manPage is the man page of a verb, in which flags stand as in its help text: with the words they take.
func manPage(cmd *cobra.Command) ([]byte, error) {
	cmd.InitDefaultHelpFlag()
	cmd.DisableAutoGenTag = true // it holds the date
	cmd.Long = unmarked.Replace(cmd.Long)
	if !cmd.HasParent() {
		cmd.Long += verbList(cmd)
	}
	words := make(map[string]string)
	describe := func(f *pflag.Flag) {
		if word, ok := f.Annotations[manWord]; ok { // a flag of every verb, of which the page before told
			words[f.Name] = word[0]
			return
		}
		word, usage := pflag.UnquoteUsage(f)
		words[f.Name] = word
		if word == "" && f.Value.Type() != "bool" && f.NoOptDefVal != "" {
			words[f.Name] = "[=" + f.NoOptDefVal + "]"
		}
		f.Usage = usage
		if word != "" && f.DefValue != "" && f.DefValue != "0" && f.DefValue != "[]" { // as the help text has it
			f.Usage += " (default " + f.DefValue + ")"
		}
		f.Usage = unmarked.Replace(f.Usage)
		f.Annotations = map[string][]string{manWord: {words[f.Name]}}
	}
	cmd.NonInheritedFlags().VisitAll(describe)
	cmd.InheritedFlags().VisitAll(describe)
	var page bytes.Buffer
	if err := doc.GenMan(cmd, &doc.GenManHeader{Section: "1", Source: "spile", Manual: "spile"}, &page); err != nil {
		return nil, err
	}
	text := manFlag.ReplaceAllFunc(page.Bytes(), func(line []byte) []byte {
		m := manFlag.FindSubmatch(line)
		word := words[string(m[2])]
		if value, ok := strings.CutPrefix(word, "[="); ok {
			return fmt.Appendf(m[1], `[=\fI%s\fP]`, strings.TrimSuffix(value, "]"))
		}
		if word != "" {
			return fmt.Appendf(m[1], ` \fI%s\fP`, word)
		}
		return m[1]
	})
	text = manTerm.ReplaceAll(text, []byte(".TP\n$1\n$2"))
	if before, after, ok := bytes.Cut(text, []byte("\n.SH EXAMPLE\n")); ok {
		text = slices.Concat(before, []byte(manExit), []byte("\n.SH EXAMPLE\n"), after)
	}
	return text, nil
}

// unmarked keeps what is Markdown to the maker of man pages, and text to the reader of help.
var unmarked = strings.NewReplacer("<", `\<`, "__", `\_\_`, "*", `\*`)

// manTerm is a flag or a verb with what it does on the next line, as cobra writes it: as paragraphs that run together.
var manTerm = regexp.MustCompile(`(?m)^(?:\.PP\n)?(\\fB.*)\n\t(.*)$`)

// manExit is the section about the exit status.
const manExit = `
.SH EXIT STATUS
.TP
\fB0\fP
Done, and complete.
.TP
\fB1\fP
Failed: bad data, input or output, value not found.
.TP
\fB2\fP
A wrong command line.
.TP
\fB3\fP
Partial: something was skipped, cut short or salvaged, and standard error says what.
.TP
\fB4\fP
A file changed while it was read.
.TP
\fB130\fP, \fB141\fP
Interrupted; the reader of standard output left before the end.

`
