package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spilehq/spile/source"
)

// env is what one run of the command has: its streams, and what the verb and the end of the run tell each other.
type env struct {
	stdin  io.Reader
	stdout *stdout       // standard output; an error of it is kept
	out    *bufio.Writer // the result, in front of stdout; dropped when the verb fails
	stderr io.Writer

	begun   time.Time
	limits  receiptFlags
	remote  remoteFlags
	shared  *shared
	wrap    func(source.Object) source.Object // what the verb puts around the objects that it reads; nil: nothing
	passes  atomic.Int64                      // how often the verb reads its input, for the progress bar
	decoded *int64                            // for the receipt of verbs that tell it

	started bool           // the command line was understood; errors are no longer of usage
	flags   *pflag.FlagSet // of the verb, then
	partial bool           // something was skipped, cut short or salvaged, and stderr says what
	stdinIn bool           // an argument has taken standard input
	inputs  []fs.FileInfo  // the files that were opened, which no output may replace
	keep    bool           // --no-overwrite: an output replaces nothing
}

// shared is what the runs of a verb for many objects have in common.
type shared struct {
	meter  source.Meter
	budget sync.Once    // of the meter
	hits   atomic.Int64 // reads that needed no request
	stores stores
}

// run runs the command line and returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, out, errs io.Writer) int {
	e := &env{stdin: stdin, stdout: &stdout{ctx: ctx, w: out}, stderr: errs, begun: time.Now(), shared: &shared{}}
	e.out = bufio.NewWriterSize(e.stdout, 64<<10)
	root := newRoot(e)
	root.SetArgs(args)
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd {
		plainUsage(root)
	}
	defer e.shared.stores.close()
	return e.finish(ctx, execute(ctx, root))
}

// execute turns a panic, which is a fault of ours, into an error like others: scripts rely on status and message. With
// GOTRACEBACK set it stays a panic, with its trace.
func execute(ctx context.Context, root *cobra.Command) (err error) {
	if os.Getenv("GOTRACEBACK") == "" {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("internal error: %v; set GOTRACEBACK=all to see where", r)
			}
		}()
	}
	return root.ExecuteContext(ctx)
}

func newRoot(e *env) *cobra.Command {
	root := &cobra.Command{
		Use:   "spile VERB [flags] ARGUMENT...",
		Short: "Read one value out of a huge document",
		Long: `Spile reads one value out of a huge document without reading the rest, writes documents that can be read so,
and shows where their bytes are.

A document is an msglc file: MessagePack or CBOR with a table of contents behind it. Plain MessagePack, CBOR and JSON
files are read as well, by a scan. Tables (tcb) and series artifacts are read by the same verbs. The format is found from
the content, never from the name. A file argument is a path, a URL (http, https, s3, gs, azblob, file), or - for standard
input. Of a URL no more is read than of a file.

The output that -o names appears when it is complete, in place of what was there under that name; when a verb fails,
what was there stays. With --no-overwrite, which goes with every -o, what is there stays in any case, and the exit status
is 1.

` + exitHelp,
		Example:       "  spile demo",
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownVerb,
		RunE: func(*cobra.Command, []string) error {
			return usagef("no verb; spile -h lists them")
		},
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			e.started = true
			e.flags = cmd.Flags()
		},
	}
	root.SetVersionTemplate("spile {{.Version}}\n")
	root.SetIn(e.stdin)
	root.SetOut(e.stdout)
	root.SetErr(e.stderr)
	root.SetFlagErrorFunc(flagError)
	root.SetUsageTemplate(usageTemplate)
	e.limits.add(root.PersistentFlags())
	e.remote.add(root.PersistentFlags())
	for _, group := range verbGroups() {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title})
		for _, verb := range group.verbs {
			cmd := verb(e)
			cmd.GroupID = group.title
			cmd.DisableFlagsInUseLine = true
			completeChoices(cmd)
			root.AddCommand(cmd)
		}
	}
	root.SetHelpCommand(newHelp())
	root.SetHelpCommandGroupID(learning)
	for _, cmd := range verbs(root) {
		cmd.Long = filled(cmd.Long)
	}
	return root
}

// helpWidth is how many characters a line of a help text has at most.
const helpWidth = 118

// filled breaks the lines of a text anew, paragraph by paragraph: texts are put together of parts. Paragraphs with columns,
// or with lines that are indented, stay.
func filled(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if strings.Contains(p, "  ") {
			continue
		}
		var b strings.Builder
		column := 0
		for _, word := range strings.Fields(p) {
			n := utf8.RuneCountInString(word)
			switch {
			case column == 0:
			case column+1+n > helpWidth:
				b.WriteByte('\n')
				column = 0
			default:
				b.WriteByte(' ')
				column++
			}
			b.WriteString(word)
			column += n
		}
		paragraphs[i] = b.String()
	}
	return strings.Join(paragraphs, "\n\n")
}

// exitHelp explains the exit status.
const exitHelp = `The exit status is 0 when all was done, 1 when something failed, 2 for a wrong command line, 3 when the result is
partial and standard error says what is missing, and 4 when a file changed while it was read. It is 130 after an
interrupt and 141 when the reader of standard output left before the end, as with other tools.`

// usageTemplate is that of cobra, with verbs where it has commands.
const usageTemplate = `Usage:
  {{.UseLine}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}{{$verbs := .Commands}}{{if eq (len .Groups) 0}}

Verbs:{{range $verbs}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{else}}{{range $group := .Groups}}

{{.Title}}{{range $verbs}}{{if (and (eq .GroupID $group.ID) (or .IsAvailableCommand (eq .Name "help")))}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableInheritedFlags}}

Flags of every verb:
{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableSubCommands}}

{{.CommandPath}} VERB -h explains a verb.{{end}}
`

// flagError is an error of the flags, in words for those who do not know the packages that find it.
func flagError(cmd *cobra.Command, err error) error {
	var number *strconv.NumError
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch text := err.Error(); {
	case errors.As(err, &unknown) && strings.HasPrefix(text, "unknown flag"):
		if like := likeFlag(cmd, unknown.GetSpecifiedName()); like != "" {
			return usagef("%s, did you mean --%s?", text, like)
		}
		return usagef("%s; %s -h lists them", text, cmd.CommandPath())
	case strings.HasPrefix(text, "unknown shorthand flag"):
		return usagef("%s; what begins with - and is no flag goes behind --", text)
	case errors.As(err, &number):
		what := "a whole number"
		if number.Func == "ParseBool" {
			what = "true or false"
		}
		return usagef("%s: want %s", strings.TrimSuffix(text, ": "+number.Error()), what)
	case errors.As(err, &invalid) && invalid.GetFlag().Value.Type() == "duration":
		return usagef("%s: want a time with its unit, as 500ms, 30s or 2m", strings.TrimSuffix(text, ": "+invalid.Unwrap().Error()))
	}
	return usage(err)
}

// likeFlag is the flag of a command whose name is nearest to one that it does not have: a name that is begun, or at most
// two letters off and half of it; "" when there is none.
func likeFlag(cmd *cobra.Command, name string) (like string) {
	best := min(2, len(name)/2) + 1
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		d := distance(name, f.Name)
		if len(name) > 2 && strings.HasPrefix(f.Name, name) {
			d = 0
		}
		if !f.Hidden && d < best {
			like, best = f.Name, d
		}
	})
	return like
}

// distance is how many letters must be put in, left out or changed to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0]++
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, corner+1, row[j]+1)
		}
	}
	return row[len(b)]
}

const learning = "Learning:"

// verbGroup is some verbs that the help text shows together.
type verbGroup struct {
	title string
	verbs []func(*env) *cobra.Command
}

// verbGroups lists the verbs in the order of the help text.
func verbGroups() []verbGroup {
	type verbs = []func(*env) *cobra.Command
	return []verbGroup{
		{"Reading:", verbs{newInfo, newLs, newGet, newCat, newDu, newVerify, newToc, newQuery, newFind}},
		{"Writing:", verbs{newPack, newIndex, newUnpack, newCombine, newExtract, newRepair, newSalvage}},
		{"Tables:", verbs{newTable}},
		{"Series:", verbs{newSeries, newServe}},
		{learning, verbs{newDemo, newCompletion, newMan, newVersion}},
	}
}

// knownVerb is reached by what is no verb.
func knownVerb(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return unknownVerb(root, args[0])
}

// unknownVerb is the error about what is no verb of a command.
func unknownVerb(cmd *cobra.Command, name string) error {
	of := ""
	if cmd.HasParent() {
		of = " of " + cmd.Name()
	}
	if like := likeVerbs(cmd, name); len(like) > 0 {
		return usagef("unknown verb %q%s, did you mean %s?", name, of, strings.Join(like, " or "))
	}
	return usagef("unknown verb %q%s; %s -h lists them", name, of, cmd.CommandPath())
}

// likeVerbs are the verbs of a command whose names are nearest to one that it does not have: a name that is begun, one that
// other tools have for the verb, or at most two letters off and half of it.
func likeVerbs(cmd *cobra.Command, name string) (like []string) {
	best := min(2, (len(name)+1)/2)
	for _, verb := range cmd.Commands() {
		if !verb.IsAvailableCommand() {
			continue
		}
		d := distance(name, verb.Name())
		if name != "" && strings.HasPrefix(verb.Name(), name) || slices.Contains(verb.SuggestFor, name) {
			d = 0
		}
		if d < best {
			like, best = nil, d
		}
		if d == best {
			like = append(like, verb.Name())
		}
	}
	return like
}

// newHelp is the help verb of cobra, with an error for what is no verb.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:     "help [VERB]",
		Short:   "Explain a verb",
		Long:    "Help prints what a verb does, its flags and an example, as -h behind the verb does.",
		Example: "  spile help get",
		RunE: func(cmd *cobra.Command, args []string) error {
			verb, rest, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return knownVerb(cmd.Root(), rest)
			}
			verb.InitDefaultHelpFlag()
			return verb.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (words []cobra.Completion, _ cobra.ShellCompDirective) {
			of, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			for _, verb := range of.Commands() {
				if verb.IsAvailableCommand() {
					words = append(words, cobra.CompletionWithDesc(verb.Name(), verb.Short))
				}
			}
			return words, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// arguments demands min to max arguments, without an upper bound where max is below 0. Their names are those of the
// use line.
func arguments(min, max int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= min && (max < 0 || len(args) <= max) {
			return nil
		}
		verb := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
		output := ""
		if max >= 0 && len(args) > max && cmd.Flags().Lookup("output") != nil {
			output = ", and -o names the output"
		}
		if len(args) > max && len(args) > 1 && strings.Contains(cmd.Long, filled(manyHelp)) && isFile(args[0]) && isFile(args[1]) {
			return usagef("%s takes one FILE, got several; a pattern in quotes stands for many", verb)
		}
		return usagef("%s takes %s%s, got %d; spile %[1]s -h shows an example", verb, countOf(min, max), output, len(args))
	}
}

func countOf(min, max int) string {
	switch {
	case max < 0 && min == 1:
		return "one argument or more"
	case max < 0:
		return fmt.Sprintf("%d arguments or more", min)
	case min != max:
		return fmt.Sprintf("%d to %d arguments", min, max)
	case min == 0:
		return "no argument"
	case min == 1:
		return "one argument"
	}
	return fmt.Sprintf("%d arguments", min)
}
