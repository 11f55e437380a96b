package main

import "github.com/spf13/cobra"

// newSeries is the verb that makes series artifacts and does what only these have. Its own verbs are beside it.
func newSeries(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "series VERB [flags] ARGUMENT...",
		Short: "Make series artifacts (columnar-series)",
		Long: `Series has the verbs for columnar-series artifacts, the series index of a metric database: a folder with a manifest
and parts, which names for each series of a bucket of time its table, its TSID, its rows and its labels.
info, ls, get, cat, du and verify read them as they read documents.`,
		Example: exampleMeta + `
  echo '{"table_id":1025,"tsid":10,"row_count":3,"labels":{"host":"web-1"}}' | spile series build --meta meta.json - -o out
  spile cat out/1/series/6f1c1f5e-3b0a-4c52-9d6e-0a1b2c3d4e5f`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownVerb(cmd, args[0])
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error {
			return usagef("series wants a verb; spile series -h lists them")
		},
	}
	for _, verb := range []func(*env) *cobra.Command{newSeriesBuild, newSeriesSelect, newSeriesLabels, newSeriesValues, newSeriesMerge, newSeriesExport, newSeriesCompare, newSeriesAnalyze, newSeriesRedact} {
		sub := verb(e)
		sub.DisableFlagsInUseLine = true
		completeChoices(sub)
		for _, name := range []string{"depth", "format", "magic", "no-sidecar"} { // which mean something for documents alone
			if f := sub.Flags().Lookup(name); f != nil {
				f.Hidden = true
			}
		}
		cmd.AddCommand(sub)
	}
	return cmd
}
