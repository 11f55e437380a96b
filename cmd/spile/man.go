package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

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
	root.DisableAutoGenTag = true // it holds the date
	err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "spile", Manual: "spile"}, dir)
	if err != nil {
		return fault.New(nil, "", "man pages").In(dir).Because(bare(err))
	}
	return nil
}
