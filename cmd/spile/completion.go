package main

import (
	"github.com/spf13/cobra"
)

// shells are the shells that completion has a script for, and what prints it.
var shells = []struct {
	name  string
	print func(root *cobra.Command, e *env, descriptions bool) error
}{
	{"bash", func(root *cobra.Command, e *env, descriptions bool) error {
		return root.GenBashCompletionV2(e.out, descriptions)
	}},
	{"zsh", func(root *cobra.Command, e *env, descriptions bool) error {
		if !descriptions {
			return root.GenZshCompletionNoDesc(e.out)
		}
		return root.GenZshCompletion(e.out)
	}},
	{"fish", func(root *cobra.Command, e *env, descriptions bool) error {
		return root.GenFishCompletion(e.out, descriptions)
	}},
	{"powershell", func(root *cobra.Command, e *env, descriptions bool) error {
		if !descriptions {
			return root.GenPowerShellCompletion(e.out)
		}
		return root.GenPowerShellCompletionWithDesc(e.out)
	}},
}

func newCompletion(e *env) *cobra.Command {
	bare := false
	names := make([]string, len(shells))
	for i, s := range shells {
		names[i] = s.name
	}
	cmd := &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell [flags]",
		Short: "Print a script that lets a shell complete words",
		Long: `Completion prints a script with which a shell completes verbs, flags, files, and the paths in a document. In one line,
for a shell that runs, and for every new one:

    bash        source <(spile completion bash)
                spile completion bash > ~/.local/share/bash-completion/completions/spile
    zsh         source <(spile completion zsh)
                spile completion zsh > "${fpath[1]}/_spile"
    fish        spile completion fish | source
                spile completion fish > ~/.config/fish/completions/spile.fish
    powershell  spile completion powershell | Out-String | Invoke-Expression
                the same line in the file that $PROFILE names

In bash it needs the package bash-completion, which most systems have or offer under that name; without it the Tab key
prints an error. In zsh it needs "autoload -U compinit; compinit" in ~/.zshrc.`,
		Example: "  source <(spile completion bash)",
		Args:    arguments(1, 1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, s := range shells {
				if s.name == args[0] {
					return s.print(cmd.Root(), e, !bare)
				}
			}
			return usagef("completion for %q is not known: bash, zsh, fish or powershell", args[0])
		},
	}
	cmd.Flags().BoolVar(&bare, "no-descriptions", false, "complete words without what they mean")
	return cmd
}
