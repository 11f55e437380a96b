package jq

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/value"
)

// FuzzSplit runs any program over small documents, rewritten and as it is, and compares.
func FuzzSplit(f *testing.F) {
	for i, program := range programs {
		f.Add(program, uint8(i))
	}
	const documents = 4
	var nodes [documents]msglc.Node
	var values [documents]any
	for i := range nodes {
		g := random{Rand: rand.New(rand.NewPCG(uint64(i), 3)), codec: value.Msgpack + value.Codec(i%2)}
		payload := fromJSON(f, g.codec, `{"a":{"b":{"c":1},"id":7},"b":[1,2.5,"x",null,[true]],"id":2,"runs":[{"id":1,"energy":[1.5,2.0]},{"id":2,"energy":[]},{"id":"x"}],"s":"a b"}`)
		if i >= 2 {
			payload = g.append(nil, 4)
		}
		nodes[i] = open(f, document(f, g.codec, payload, msglc.WriteOptions{Threshold: 16, Trivial: 8}), nil).Root()
		var text bytes.Buffer
		if err := nodes[i].WriteJSON(context.Background(), &text, nil, nil); err != nil {
			f.Fatal(err)
		}
		var err error
		if values[i], err = parse(&text); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, program string, pick uint8) {
		if strings.Contains(program, "now") || strings.Contains(program, "local") { // the clock
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		i := int(pick % documents)
		s := defaultSizes
		s.container *= int64(pick / documents % 2)
		want := plainly(ctx, program, values[i], &value.JSONOptions{})
		got := ours(ctx, program, nodes[i], &value.JSONOptions{}, s)
		if ctx.Err() != nil {
			return
		}
		if got.String() != want.String() {
			t.Errorf("%s\nof %.1000v\ngot\n%.2000s\nwant\n%.2000s", program, values[i], got, want)
		}
	})
}
