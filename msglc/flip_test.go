package msglc

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// TestFlippedTable flips bits of a long table of contents. A walk over all the children ends with an error, or the damage
// has not moved one child to the place of another.
func TestFlippedTable(t *testing.T) {
	for _, c := range []value.Codec{value.Msgpack, value.CBOR} {
		var rows []any
		for i := range int64(4000) {
			rows = append(rows, []any{i, fmt.Sprint("name of ", i), value.OrderedMap{{Key: "id", Value: i}, {Key: "list", Value: []any{i, int64(700), int64(800), int64(90000)}}}})
		}
		byName := value.OrderedMap{}
		for i, row := range rows {
			byName = append(byName, value.Pair{Key: fmt.Sprint("k", i), Value: row})
		}
		for name, doc := range map[string]any{"list": rows, "map": byName} {
			o := &WriteOptions{Codec: c, Threshold: 16, Trivial: 4}
			file := archiveOf(t, appendTyped(nil, c, doc), o)
			in := open(t, file, nil).Info()
			failed, right := 0, 0
			for at := in.TOCStart + 2000; at < in.TOCStart+2400; at += 13 {
				for bit := range 8 {
					flipped := bytes.Clone(file)
					flipped[at] ^= 1 << bit
					r, err := Open(t.Context(), source.Memory("flip.msg", flipped), nil)
					if err != nil {
						failed++
						continue
					}
					var item Node
					for child, err2 := range r.Root().Children(t.Context()) {
						if err = err2; err == nil && child.Index == 3990 {
							item = child.Node
						}
					}
					if err != nil {
						failed++
						continue
					}
					right++
					id, err := item.Index(t.Context(), 0)
					if err != nil {
						t.Fatal(err)
					}
					if v, err := id.Value(t.Context()); err != nil || text(v) != "3990" {
						t.Errorf("%s %s: bit %d at %d of the table: item 3990 is %v, %v", c, name, bit, at-in.TOCStart, v, err)
					}
				}
			}
			t.Logf("%s %s: table of %d, %d failed, %d right", c, name, in.TOCSize, failed, right)
		}
	}
}
