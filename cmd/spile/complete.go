package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/value"
)

type completion = func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective)

// completeFiles completes up to n arguments by files, any number where n is below 0.
func completeFiles(n int) completion {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if n >= 0 && len(args) >= n {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveDefault
	}
}

// completeChoices completes the flags that take one of some words.
func completeChoices(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if c, ok := f.Value.(interface{ choices() []string }); ok {
			// The error is of a flag that does not exist, or has a completion.
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(c.choices(), cobra.ShellCompDirectiveNoFileComp))
		}
	})
}

// plainUsage takes the marks off the explanations of flags that say what a value is called: a shell shows them as they are.
func plainUsage(root *cobra.Command) {
	for _, cmd := range verbs(root) {
		unmark := func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "`", "") }
		cmd.Flags().VisitAll(unmark)
		cmd.PersistentFlags().VisitAll(unmark)
	}
}

const (
	// A shell that waits longer than this for completions seems to hang.
	completeTime = 500 * time.Millisecond
	// More than this is no help.
	completeCount = 1000
	// What has no table of contents is read up to this size.
	completeSize = 1 << 20
)

// completePath completes a file, and then paths in it: from its table of contents, and of what has none from the values,
// where they are short.
func completePath(e *env, in *sourceFlags) completion {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0:
			return nil, cobra.ShellCompDirectiveDefault
		case args[0] == "-":
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTime)
		defer cancel()
		return e.paths(ctx, args[0], word, in), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// completeLabel completes an artifact, or a folder of many, and then one of its labels.
func completeLabel(e *env, in *sourceFlags) completion {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0:
			return nil, cobra.ShellCompDirectiveDefault
		case len(args) > 1 || isURL(args[0]):
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTime)
		defer cancel()
		names, many, err := e.manyOf(ctx, args[0], in)
		if !many {
			names = args
		}
		var labels []cobra.Completion
		for _, name := range names {
			if err != nil || len(labels) > 0 {
				break
			}
			err = e.withArtifact(ctx, name, in, func(a *artifact) error {
				for _, t := range a.Tags() {
					labels = append(labels, t.Name)
				}
				return nil
			})
		}
		return labels, cobra.ShellCompDirectiveNoFileComp
	}
}

// paths returns the paths in a file that begin with word and are one step longer than its last slash.
func (e *env) paths(ctx context.Context, file, word string, in *sourceFlags) []cobra.Completion {
	if isURL(file) { // the network is not asked for what somebody types
		return nil
	}
	d, err := e.open(ctx, file, in)
	if err != nil {
		return nil
	}
	defer d.Close()
	if d.table != nil {
		return d.table.paths(word)
	}
	if d.artifact != nil {
		return d.artifact.paths(ctx, word)
	}
	if d.Info().TOCSize == 0 && d.size > completeSize {
		return nil
	}
	before := word[:strings.LastIndexByte(word, '/')+1]
	path, err := msglc.ParsePath(strings.TrimSuffix(before, "/"))
	if err != nil {
		return nil
	}
	n, err := d.Find(ctx, path)
	if err != nil {
		return nil
	}
	switch n.Form() {
	case msglc.List, msglc.Map, msglc.Combined:
	default:
		kind, err := n.Kind(ctx)
		if err != nil || kind != value.Array && kind != value.Map {
			return nil
		}
		if size, err := n.Size(ctx); err != nil || size > completeSize {
			return nil
		}
	}
	var out []cobra.Completion
	for child, err := range n.Children(ctx) {
		if err != nil || len(out) == completeCount {
			break
		}
		step := child.Step().String()
		if strings.HasPrefix(before, "/") {
			step = strings.ReplaceAll(strings.ReplaceAll(step, "~", "~0"), "/", "~1")
		} else if step == "" || strings.Contains(step, "/") {
			continue // only a JSON Pointer leads there
		}
		if strings.HasPrefix(before+step, word) && isPlain(step) {
			out = append(out, before+step)
		}
	}
	return out
}
