package jq_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/spilehq/spile/adapters/jq"
	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// document is a document in memory.
func document() *msglc.Reader {
	payload, err := value.AppendFromJSON(nil, value.Msgpack, []byte(`{"runs":[
		{"id":1,"energy":[-1.5,-2.0],"host":"a"},
		{"id":2,"energy":[-3.0,0.25],"host":"b"}]}`), nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	r, err := msglc.OpenRaw(context.Background(), source.Memory("run.msgpack", payload), value.Msgpack, nil)
	if err != nil {
		log.Fatal(err)
	}
	return r
}

func Example() {
	ctx := context.Background()
	r := document()
	defer r.Close()
	q, err := jq.Compile(`.runs[] | select(.id == 2) | .energy`, nil)
	if err != nil {
		log.Fatal(err)
	}
	for result, err := range q.Run(ctx, r.Root(), nil) {
		if err == nil {
			err = result.WriteJSON(os.Stdout)
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println()
	}
	// Output:
	// [-3.0,0.25]
}

func ExampleParseValue() {
	ctx := context.Background()
	r := document()
	defer r.Close()
	id, err := jq.ParseValue("2")
	if err != nil {
		log.Fatal(err)
	}
	q, err := jq.Compile(`.runs[] | select(.id == $id) | .host`, &jq.Options{Variables: map[string]any{"id": id}})
	if err != nil {
		log.Fatal(err)
	}
	for result, err := range q.Run(ctx, r.Root(), nil) {
		if err != nil {
			log.Fatal(err)
		}
		text, isString, err := result.Text()
		fmt.Println(text, isString, err)
	}
	// Output:
	// b true <nil>
}
