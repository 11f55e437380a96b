package main

import (
	"strconv"

	"github.com/spf13/pflag"
)

// tableFlags go with the verbs that print a table.
type tableFlags struct {
	json   bool
	pretty bool
}

func (f *tableFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&f.json, "json", false, "print one JSON document instead of a table")
	flags.BoolVar(&f.pretty, "pretty", false, "indent the JSON")
}

// oneLine keeps the name of a file from breaking a line.
func oneLine(s string) string {
	if isPlain(s) {
		return s
	}
	return strconv.Quote(s)
}

// jsonArray prints the items of an array one by one, so that a long one takes no memory.
type jsonArray struct {
	e      *env
	pretty bool
	any    bool
}

func (a *jsonArray) add(v any) error {
	separator := "["
	if a.any {
		separator = ","
	}
	a.any = true
	a.e.out.WriteString(separator)
	text, err := marshal(v)
	if err != nil {
		return err
	}
	if a.pretty {
		a.e.out.WriteString("\n  ")
	}
	_, err = a.e.out.Write(text)
	return err
}

func (a *jsonArray) end() error {
	switch {
	case !a.any:
		a.e.out.WriteString("[")
	case a.pretty:
		a.e.out.WriteString("\n")
	}
	_, err := a.e.out.WriteString("]\n")
	return err
}
