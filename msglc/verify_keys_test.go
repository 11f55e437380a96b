package msglc

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/spilehq/spile/fault"
)

// TestVerifyManyKeys compares the keys of a map that has more than are compared at once: all that occur twice are found,
// at the same places as by one pass.
func TestVerifyManyKeys(test *testing.T) {
	const count = 5000
	payload := make([]byte, 10)
	var table obj
	for i := range count {
		table = append(table, kv(fmt.Sprintf("key %d", i), obj{p(1, 2)}))
	}
	for _, i := range []int{0, 7, 4999, 7, 2500} {
		table = append(table, kv(fmt.Sprintf("key %d", i), obj{p(1, 2)}))
	}
	table = append(table, kv(int64(7), obj{p(1, 2)}), kv([]byte("key 8"), obj{p(1, 2)}))
	file := withTOC(test, payload, obj{p(0, 10), t(table)})
	var all [][]string
	for _, atOnce := range []int64{keysAtOnce, 1000, 64} {
		r := open(test, file, nil)
		var found []string
		v := &verifier{ctx: test.Context(), left: 1 << 20, keysAtOnce: atOnce, report: func(f Finding) {
			if f.Note || !errors.Is(f.Err, fault.Conflict) {
				test.Errorf("%d at once: %v", atOnce, f.Err)
			}
			found = append(found, f.Err.Error())
		}}
		v.archive(r, nil)
		slices.Sort(found)
		all = append(all, found)
		if len(found) != 5 || v.err != nil || !slices.Equal(found, all[0]) {
			test.Errorf("%d at once: %q, %v, want %q", atOnce, found, v.err, all[0])
		}
	}
}
