//go:build !purego

package tcb

import (
	"context"
	"testing"
)

// Beside the columns, a load makes the rows and a slab for each array column, however many rows there are.
func TestLoadAllocations(t *testing.T) {
	ctx := context.Background()
	allocs := func(n int) float64 {
		file, err := Marshal(nil, benchRows(n), nil)
		if err != nil {
			t.Fatal(err)
		}
		table := openFile(t, file)
		columns := testing.AllocsPerRun(5, func() {
			if _, err := table.Read(ctx); err != nil {
				t.Fatal(err)
			}
		})
		return testing.AllocsPerRun(5, func() {
			if _, err := Load[benchRow](ctx, table); err != nil {
				t.Fatal(err)
			}
		}) - columns
	}
	if few, many := allocs(400), allocs(4000); many > few+25 {
		t.Errorf("%v allocations for 400 rows, %v for 4000", few, many)
	} else {
		t.Logf("%v allocations for 400 rows, %v for 4000", few, many)
	}
}
