package main

import "github.com/spf13/pflag"

// tableFlags go with the verbs that print a table.
type tableFlags struct {
	json   bool
	pretty bool
}

func (f *tableFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&f.json, "json", false, "print one JSON document instead of a table")
	flags.BoolVar(&f.pretty, "pretty", false, "indent the JSON; implies --json")
}

// asJSON reports whether JSON is wanted in place of a table.
func (f *tableFlags) asJSON() bool { return f.json || f.pretty }

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

// end ends the array, with what comes behind it.
func (a *jsonArray) end(behind string) error {
	switch {
	case !a.any:
		a.e.out.WriteString("[")
	case a.pretty:
		a.e.out.WriteString("\n")
	}
	_, err := a.e.out.WriteString("]" + behind)
	return err
}
