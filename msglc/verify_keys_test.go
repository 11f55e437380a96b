package msglc

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/keyset"
)

// TestVerifyManyKeys compares the keys of a map that has more than are kept in memory: all that occur twice are found,
// in the same order, with few passes over the table.
func TestVerifyManyKeys(test *testing.T) {
	const count = 5000
	payload := make([]byte, 10)
	var table obj
	for i := range count {
		table = append(table, kv(fmt.Sprintf("key %d", i), obj{p(1, 2)}))
	}
	again := []int{0, 7, 4999, 7, 2500}
	for _, i := range again {
		table = append(table, kv(fmt.Sprintf("key %d", i), obj{p(1, 2)}))
	}
	table = append(table, kv(int64(7), obj{p(1, 2)}), kv([]byte("key 8"), obj{p(1, 2)}))
	file := withTOC(test, payload, obj{p(0, 10), t(table)})
	limits := keyset.Limits{Reread: 40 * (keyset.EntrySize + 8), Filter: 1 << 12, Suspects: 1000}
	for _, atOnce := range []int64{keysAtOnce, 64} {
		for _, passes := range []int64{maxKeyPasses, 1} {
			r := open(test, file, nil)
			var found []string
			limited := false
			all := int64(len(file))
			v := &verifier{ctx: test.Context(), left: 2 * all, keysAtOnce: atOnce, keysLeft: passes * r.h.tocSize, report: func(f Finding) {
				if limited = limited || errors.Is(f.Err, fault.Limit); !limited && !errors.Is(f.Err, fault.Conflict) {
					test.Errorf("%d at once: %v", atOnce, f.Err)
				}
				found = append(found, f.Err.Msg)
			}}
			v.keys.SetLimits(limits)
			v.archive(r, nil)
			if v.err != nil {
				test.Fatal(v.err)
			}
			if limited || passes == 1 && atOnce == 64 {
				if !limited || passes != 1 {
					test.Errorf("%d at once, %d passes: limited %v: %q", atOnce, passes, limited, found)
				}
				continue
			}
			if used := passes*r.h.tocSize - v.keysLeft; used > 2*r.h.tocSize {
				test.Errorf("%d at once: %d bytes of a table of %d passed over", atOnce, used, r.h.tocSize)
			}
			if len(found) != len(again) {
				test.Errorf("%d at once: %q", atOnce, found)
				continue
			}
			for i, k := range again {
				if want := fmt.Sprintf(`key "key %d" occurs`, k); !strings.HasPrefix(found[i], want) {
					test.Errorf("%d at once: %q, want %q", atOnce, found[i], want)
				}
			}
		}
	}
}
