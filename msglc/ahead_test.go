package msglc

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// TestSliceRequests pins the requests for a slice of a list of small leaves, whatever is made of it.
func TestSliceRequests(t *testing.T) {
	list := make([]any, 4_000)
	for i := range list {
		list[i] = strings.Repeat("x", 30+i%7)
	}
	file := dumps(t, list, &WriteOptions{Threshold: 1, Trivial: 1})
	for _, cache := range []int64{0, -1} {
		for _, bounds := range [][3]int64{{200, 3_800, 1}, {3_800, 200, -1}, {0, 4_000, 3}} {
			for name, read := range map[string]func(Node) (any, error){
				"value": func(n Node) (any, error) { return n.Value(t.Context()) },
				"raw": func(n Node) (any, error) {
					raw, err := n.Raw(t.Context())
					if err != nil {
						return nil, err
					}
					return value.Decode(raw.Codec, raw.Data, value.Limits{})
				},
				"json": func(n Node) (any, error) {
					var text strings.Builder
					err := n.WriteJSON(t.Context(), &text, nil, nil)
					var list []any
					for s := range strings.SplitSeq(strings.Trim(text.String(), "[]"), ",") {
						list = append(list, strings.Trim(s, `"`))
					}
					return list, err
				},
				"extract": func(n Node) (any, error) {
					var out buffer
					if err := Extract(t.Context(), &out, n, nil); err != nil {
						return nil, err
					}
					return open(t, out, nil).Root().Value(t.Context())
				},
			} {
				var meter source.Meter
				r, err := Open(t.Context(), meter.Object(source.Memory("small.msg", file)), &Options{CacheBytes: cache})
				if err != nil {
					t.Fatal(err)
				}
				if r.root.form != List {
					t.Fatalf("root of form %v", r.root.form)
				}
				n, err := r.Root().Slice(t.Context(), bounds[0], bounds[1], bounds[2])
				if err != nil {
					t.Fatal(err)
				}
				got, err := read(n)
				var want []any
				for i := bounds[0]; bounds[2] > 0 && i < bounds[1] || bounds[2] < 0 && i > bounds[1]; i += bounds[2] {
					want = append(want, list[i])
				}
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("%s of %v: wrong items, %v", name, bounds, err)
				}
				most := int64(20)
				if bounds[2] == 3 {
					most = 1400 // of memory nothing is read between two items
				}
				if got := meter.Receipt(); got.Requests > most {
					t.Errorf("%s of %v, cache %d: %d requests", name, bounds, cache, got.Requests)
				}
			}
		}
	}
}

// TestSliceBudget: a budget that has no room for a window has room for the items before it.
func TestSliceBudget(t *testing.T) {
	list := make([]any, 2000)
	for i := range list {
		list[i] = strings.Repeat("x", 30)
	}
	file := dumps(t, list, &WriteOptions{Threshold: 1, Trivial: 1})
	slice := func(meter *source.Meter) Node {
		r, err := Open(t.Context(), meter.Object(source.Memory("small.msg", file)), nil)
		if err != nil {
			t.Fatal(err)
		}
		n, err := r.Root().Slice(t.Context(), 1000, 2000, 1)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	var meter source.Meter
	for _, err := range slice(&meter).Children(t.Context()) { // what the table takes
		if err != nil {
			t.Fatal(err)
		}
	}
	tight := source.Meter{MaxBytes: meter.Receipt().Bytes + 10*31 + 30}
	items := 0
	for child, err := range slice(&tight).ahead(t.Context()) {
		if err == nil {
			_, err = child.Node.Value(t.Context())
		}
		if err != nil && (!errors.Is(err, fault.Limit) || items != 10) {
			t.Errorf("%d items, then %v", items, err)
		}
		if err != nil {
			return
		}
		items++
	}
	t.Errorf("%d items and no error", items)
}
