package seriesjson_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spilehq/spile/adapters/seriesjson"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/series"
)

var tags = []series.Tag{{ColumnID: 5, Name: "host"}, {ColumnID: 6, Name: "a\"b"}}

func Example() {
	text := `{"table_id":1025,"tsid":18446744073709551615,"row_count":3,"labels":{"host":"web-1","a\"b":null}}`
	for r, err := range seriesjson.Records(context.Background(), strings.NewReader(text), "in", tags) {
		if err != nil {
			fmt.Println(err)
			return
		}
		line, _ := seriesjson.Append(nil, r)
		fmt.Println(string(line))
	}
	// Output: {"table_id":1025,"tsid":18446744073709551615,"row_count":3,"labels":{"host":"web-1"}}
}

func ExampleLabels() {
	text := `{"table_id":1,"tsid":2,"row_count":3,"labels":{"host":"web-1"}}
{"table_id":1,"tsid":3,"row_count":3,"labels":{"zone":null,"host":"web-2"}}`
	fmt.Println(seriesjson.Labels(context.Background(), strings.NewReader(text), "in"))
	fmt.Println(seriesjson.Labels(context.Background(), strings.NewReader(text[:90]), "in"))
	// Output:
	// [host zone] <nil>
	// [] seriesjson: in: line 2: the line ends inside the series: a series is an object on one line (offset 0x5a)
}

func TestRecordsRefused(t *testing.T) {
	good := `{"table_id":1,"tsid":2,"row_count":3,"labels":{"a\"b":"é\n"}}` + "\n\n"
	for text, want := range map[string]string{
		`{"table_id":1,"tsid":2,"row_count":3,"labels":{"hots":"x"}}`:            `in: line 3: the label "hots" is no tag of the artifact`,
		`{"table_id":1,"tsid":2,"row_count":3,"labels":{"hots":null}}`:           `no tag of the artifact`,
		`{"table_id":1,"tsid":2,"row_count":3,"labels":{"host":7}}`:              `the label "host" is a number, not text`,
		`{"table_id":1,"tsid":2,"row_count":3,"labels":{"host":"a","host":"b"}}`: `"host" is there twice`,
		`{"table_id":1,"tsid":2,"labels":{}}`:                                    `row_count is missing`,
		`{"table_id":1,"tsid":2,"row_count":0,"labels":{}}`:                      `row_count is 0`,
		`{"table_id":4294967296,"tsid":2,"row_count":1}`:                         `an integer of 0 to 4294967295`,
		`{"table_id":1,"tsid":18446744073709551616,"row_count":1}`:               `an integer of 0 to 18446744073709551615`,
		`{"table_id":1,"tsid":2.0,"row_count":1}`:                                `tsid is 2.0`,
		`{"table_id":1,"tsid":"2","row_count":1}`:                                `tsid is text`,
		`{"table_id":1,"tsid":2,"row_count":1,"extra":1}`:                        `"extra" is none of a series`,
		`{"table_id":1,"tsid":2,"row_count":1} {}`:                               `more behind`,
		`{"table_id":1,`: `the line ends inside`,
		`[]`:             `the line is an array, not an object`,
		"{\"table_id\":1,\"tsid\":2,\"row_count\":3,\"labels\":{\"host\":\"\xff\"}}":   `UTF-8`,
		`{"table_id":1,"tsid":2,"row_count":3,"labels":{"host":"\ud800"}}`:             `surrogate`,
		`{"table_id":1,"tsid":2,"row_count":3,"labels":[]}`:                            `labels is an array`,
		`{"table_id":1,"tsid":2,"row_count":3,"labels":{"host":"x"}` + "\n" + `}` + "": `the line ends inside`,
	} {
		n := 0
		var failed error
		for _, err := range seriesjson.Records(context.Background(), strings.NewReader(good+text), "in", tags) {
			if err != nil {
				failed = err
				break
			}
			n++
		}
		if n != 1 || !errors.Is(failed, fault.Invalid) || !strings.Contains(failed.Error(), want) || !strings.Contains(failed.Error(), "line 3") {
			t.Errorf("%s: %d records, %v, want %s", text, n, failed, want)
		}
	}
}
