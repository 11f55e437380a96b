package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "Version prints the version of spile, of the Go it was built with, and the system it was built for.",
		Example: "  spile version",
		Args:    arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(e.out, "spile %s\n", version())
			return err
		},
	}
}

// version is the version of the module, as the build recorded it.
func version() string {
	v := "devel"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		v = info.Main.Version
	}
	return fmt.Sprintf("%s %s %s/%s", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
