package main

import (
	"github.com/spf13/cobra"
)

func newCat(e *env) *cobra.Command {
	var in sourceFlags
	var out jsonFlags
	cmd := &cobra.Command{
		Use:   "cat FILE [flags]",
		Short: "Print all of a file as JSON",
		Long: `Cat prints a document as one line of JSON, or indented with --pretty, in stored order. It streams: a document of any
length takes the same memory. It prints a table as JSON Lines, an object for each row, keyed by the names that --schema
gives, or by the tags; without a schema a datetime is its number. A schema may have wider types than the table, and columns
that it lacks, which are null or empty.

It prints a series artifact as JSON Lines, too, in the order of tables and TSIDs, with the labels that are not null. Of a
folder with many artifacts below it prints one behind the other; those that are bad are named, and the exit status is 3.

Integers keep every digit, floats read back to the same bits, bytes are base64url without padding. Where JSON has no
form for a value, --non-finite, --invalid-utf8, --keys and --dup say what becomes of it; without them it is an error.

` + manyHelp,
		Example:           `  echo '{"runs":[1,2,3]}' | spile pack - -o run.msg && spile cat --pretty run.msg`,
		Args:              arguments(1, 1),
		ValidArgsFunction: completeFiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			many, err := e.notPattern(cmd.Context(), args[0], &in)
			if err != nil {
				return err
			}
			if many != nil {
				return e.catBelow(cmd.Context(), many.names, &in, &out)
			}
			return e.forEach(cmd.Context(), args[0], &in, out.printed(), func(e *env, file string) error {
				return e.printValues(cmd.Context(), file, nil, &in, &out)
			})
		},
	}
	in.add(cmd.Flags())
	in.addTables(cmd.Flags())
	in.tables.addLabels(cmd.Flags())
	in.addArtifacts()
	in.artifacts.once = true
	in.addStrict(cmd.Flags())
	out.add(cmd.Flags())
	return cmd
}
