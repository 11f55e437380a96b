package main

import (
	"context"
	"encoding/csv"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/spilehq/spile/fault"
)

// readTables finds the tables of the metrics of a block: those that a file gives them, and, where assign says so, for the
// others numbers above these, in the order of the names.
func (in *seriesInput) readTables(ctx context.Context, path string, assign bool) error {
	in.tables = make(map[string]uint32)
	next := uint64(1)
	if path != "" {
		byID, err := readTableNames(path)
		if err != nil {
			return err
		}
		for _, id := range slices.Sorted(maps.Keys(byID)) {
			name := byID[id]
			if other, twice := in.tables[name]; twice {
				return fault.New(fault.Invalid, "", "the metric %q has the tables %d and %d", name, other, id).In(path)
			}
			in.tables[name] = id
			next = uint64(id) + 1
		}
	}
	if !assign {
		return nil
	}
	_, metrics, err := in.block.Names(ctx)
	if err != nil {
		return err
	}
	for _, name := range metrics {
		if _, ok := in.tables[name]; ok {
			continue
		}
		if next > math.MaxUint32 {
			return fault.New(fault.Limit, "", "the metric %q would have the table %d, and tables are numbers of 32 bits", name, next).In(in.name)
		}
		in.tables[name] = uint32(next)
		next++
	}
	return nil
}

// writeTables writes the tables of the metrics as --tables reads them.
func (in *seriesInput) writeTables(out io.Writer) error {
	names := make(map[uint32]string, len(in.tables))
	for name, id := range in.tables {
		names[id] = name
	}
	return writeTableNames(out, names)
}

// writeTableNames writes the names of tables, as --tables reads them.
func writeTableNames(out io.Writer, names map[uint32]string) error {
	w := csv.NewWriter(out)
	w.Write([]string{"table_id", "name"})
	for _, id := range slices.Sorted(maps.Keys(names)) {
		w.Write([]string{strconv.FormatUint(uint64(id), 10), names[id]})
	}
	w.Flush()
	return w.Error() // of any write
}
