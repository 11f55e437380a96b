package rangetest_test

import (
	"fmt"
	"io"
	"testing"

	"go.uber.org/goleak"

	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/value"
)

// TestPassesReadOnce pins that what goes over all of a document reads each of its bytes once, in long requests.
func TestPassesReadOnce(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) }) // behind the end of the server
	ctx := t.Context()
	c := newCosts(t)
	doc := document(t, 100_000)
	list := make([]any, 100_000)
	for i := range list {
		list[i] = map[string]any{"name": fmt.Sprintf("run %d", i), "energy": float64(i) + 0.5, "tail": make([]byte, 60)}
	}
	for _, format := range []string{"document", "msgpack", "cbor"} {
		file := doc
		codec := value.Msgpack
		if format == "cbor" {
			codec = value.CBOR
		}
		if format != "document" {
			var err error
			if file, err = value.Append(nil, codec, map[string]any{"runs": list}); err != nil {
				t.Fatal(err)
			}
		}
		for what, pass := range map[string]func(r *msglc.Reader) error{
			"verification": func(r *msglc.Reader) error {
				return r.Verify(ctx, &msglc.VerifyOptions{Deep: true}, func(f msglc.Finding) { t.Error(f.Err) })
			},
			"text": func(r *msglc.Reader) error { return r.Root().WriteJSON(ctx, io.Discard, nil, nil) },
			"children": func(r *msglc.Reader) error {
				n, err := r.Find(ctx, msglc.SplitPath("runs"))
				if err != nil {
					return err
				}
				got := 0
				for _, err := range n.Children(ctx) {
					if err != nil {
						return err
					}
					got++
				}
				if got != len(list) {
					t.Errorf("%d children", got)
				}
				return nil
			},
		} {
			c.server.Put("/file", file)
			obj, err := c.open(ctx, "/file")
			if err != nil {
				t.Fatal(err)
			}
			var r *msglc.Reader
			if format == "document" {
				r, err = msglc.Open(ctx, obj, nil)
			} else {
				r, err = msglc.OpenRaw(ctx, obj, codec, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := pass(r); err != nil {
				t.Error(err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			// What is found at the head of the table, and a look at the children, may come twice.
			most := map[string]int64{
				"verification": int64(len(file)), "text": r.Info().PayloadSize + r.Info().TOCSize/4, "children": r.Info().TOCSize + 64<<10,
			}[what]
			if format != "document" {
				most = int64(len(file))
				if what == "children" { // one scan leads to the list, the other one goes over it
					most *= 2
				}
			}
			if got := c.server.Bytes(); got > most {
				t.Errorf("%s of a %s: %d bytes, at most %d", what, format, got, most)
			}
			c.atMost(what+" of a "+format, 16)
		}
	}
}
