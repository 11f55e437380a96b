package series

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/spilehq/spile/fault"
)

const goodManifest = `{"format":"columnar-series","version":1,"region_id":1,"generation":"6f1c1f5e-3b0a-4c52-9d6e-0a1b2c3d4e5f",
 "tags":[{"column_id":5,"name":"host"}],
 "coverage":{"file_size":0,"index_uuid":"6f1c1f5e-3b0a-4c52-9d6e-0a1b2c3d4e5f","compaction_window_secs":-7200,
  "bucket_start":{"value":-9223372036854775808,"unit":"Second"},"window_sequences":{"-5":{"start":-5,"end":0,"max_sequence":18446744073709551615}}},
 "files":[{"part_id":0,"file_size":628,"num_series":3,"first":{"table_id":1025,"tsid":10},"last":{"table_id":1026,"tsid":18446744073709551615}}]}`

// What is wrong with a manifest is told by the first of the checks 2 to 4 that fails, or by any other.
func TestManifestFaults(t *testing.T) {
	m, err := ParseManifest([]byte(goodManifest))
	if err != nil {
		t.Fatal(err)
	}
	if c := m.Coverage; *c.CompactionWindowSecs != -7200 || c.BucketStart.Value != -1<<63 || c.WindowSequences["-5"].MaxSequence != 1<<64-1 || m.Files[0].Last.TSID != 1<<64-1 {
		t.Errorf("%+v", m)
	}
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	for _, tt := range []struct {
		old, new string
		class    error
		check    int
	}{
		{`"region_id":1`, `"region_id":1e0`, fault.Corrupt, 5},
		{`"region_id":1`, `"region_id":1e999`, fault.Corrupt, 5},
		{`"region_id":1`, `"region_id":1.0`, fault.Corrupt, 5},
		{`"region_id":1`, `"region_id":-1`, fault.Corrupt, 5},
		{`"region_id":1`, `"region_id":-0`, fault.Corrupt, 5},
		{`"region_id":1`, `"region_id":01`, fault.Corrupt, 2},
		{`"region_id":1`, `"region_id":+1`, fault.Corrupt, 2},
		{`"region_id":1`, `"region_id":null`, fault.Corrupt, 5},
		{`"region_id":1`, `"region_id":18446744073709551616`, fault.Corrupt, 5},
		{`"region_id":1`, `"region_id":` + strings.Repeat("9", 1<<20), fault.Corrupt, 5},
		{`"region_id":1,`, ``, fault.Corrupt, 5},
		{`"region_id":1`, `"region_id":1,"region_id":1`, fault.Corrupt, 2},
		{`"region_id":1`, `"region_id":1,"r\u0065gion_id":1`, fault.Corrupt, 2},
		{`"version":1`, `"version":2,"version":2`, fault.Corrupt, 2},
		{`"version":1`, `"version":2`, fault.UnsupportedVersion, 4},
		{`"version":1`, `"version":"1"`, fault.Corrupt, 4},
		{`"version":1,`, ``, fault.Corrupt, 4},
		{`"format":"columnar-series","version":1`, `"version":2,"format":"other"`, fault.UnsupportedVersion, 3},
		{`"format":"columnar-series","version":1`, `"version":2,"format":7`, fault.Corrupt, 3},
		{`"format":"columnar-series",`, ``, fault.Corrupt, 3},
		{`"format":"columnar-series","version":1,"region_id":1`, `"region_id":"1","version":2,"format":"columnar-series"`, fault.UnsupportedVersion, 4},
		{`-7200`, `-0`, fault.Corrupt, 9},
		{`-7200`, `9223372036854775808`, fault.Corrupt, 9},
		{`-7200`, `-9223372036854775809`, fault.Corrupt, 9},
		{`"-5":{`, `"5 ":{`, fault.Corrupt, 9},
		{`"window_sequences":{`, `"window_sequences":{"\u002d5":{"start":1,"end":2,"max_sequence":3},`, fault.Corrupt, 2},
		{`"file_size":0`, `"artifact":{},"file_size":0`, fault.Corrupt, 9},
		{`"file_size":0`, `"artifact":null,"file_size":0`, nil, 0},
		{`"files":[`, `"files":[{},`, fault.Corrupt, 5},
		{`"files":[`, `"files":[,`, fault.Corrupt, 2},
		{`"files":[`, `"more":` + deep + `,"files":[`, fault.Limit, 2},
		{`"files":[`, `"format ":{"format":[1e999,-0,"\ud83d\ude00",{}]},"FORMAT":1,"files":[`, nil, 0},
		{`"files":[`, `"x":"\ud83d","files":[`, fault.Corrupt, 2},
		{`"files":[`, `"x":"` + "\x01" + `","files":[`, fault.Corrupt, 2},
		{`"files":[`, `"x":tru,"files":[`, fault.Corrupt, 2},
		{`"files":[`, `"x":"` + "\xff" + `","files":[`, fault.Corrupt, 2},
		{`]}`, `]}x`, fault.Corrupt, 2},
		{`]}`, `],}`, fault.Corrupt, 2},
		{`]}`, ``, fault.Corrupt, 2},
	} {
		text := strings.Replace(goodManifest, tt.old, tt.new, 1)
		if tt.old == `]}` {
			text = strings.TrimSuffix(goodManifest, tt.old) + tt.new
		}
		if text == goodManifest {
			t.Fatalf("%s is not there", tt.old)
		}
		_, err := ParseManifest([]byte(text))
		if Check(err) != tt.check || tt.class != nil && !errors.Is(err, tt.class) || tt.class == nil && err != nil {
			t.Errorf("%s for %s: %v, want check %d", short(tt.new), tt.old, err, tt.check)
		}
		if err != nil && len(err.Error()) > 400 {
			t.Errorf("a message of %d bytes", len(err.Error()))
		}
	}
}

// A hostile manifest costs memory as its bytes do, or less.
func TestManifestMemory(t *testing.T) {
	const size = 4 << 20
	fill := func(item string) string { return strings.Repeat(item, size/len(item)) }
	part := `{"part_id":0,"file_size":628,"num_series":3,"first":{"table_id":1,"tsid":1},"last":{"table_id":1,"tsid":1}},`
	for name, text := range map[string]string{
		"items":      `"x":[` + fill(`0,`) + `0],"files":[`,
		"members":    `"x":{` + fill(`"":0,`) + `"":0},"files":[`,
		"unknown":    fill(`"a":0,`) + `"files":[`,
		"defined":    fill(`"version":1,`) + `"files":[`,
		"parts":      `"files":[` + fill(part),
		"containers": `"x":[` + fill(`[[]],`) + `0],"files":[`,
		"string":     `"x":"` + fill(`\u0061`) + `","files":[`,
		"name":       `"` + fill(`a`) + `":0,"files":[`,
		"number":     `"x":1` + fill(`0`) + `,"files":[`,
		"format":     `"format":"` + fill(`b`) + `","files":[`,
		"windows":    `"coverage":{"window_sequences":{` + fill(`"x":{},`) + `"x":{}}},"files":[`,
	} {
		text := []byte(strings.Replace(goodManifest, `"files":[`, text, 1))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := ParseManifest(text)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 6*size {
			t.Errorf("%s: %d bytes for a manifest of %d", name, got, len(text))
		}
		if err != nil && len(err.Error()) > 400 {
			t.Errorf("%s: a message of %d bytes", name, len(err.Error()))
		}
	}
}

// A verifier lists the first of the members that nobody knows, and counts the rest.
func TestManifestUnknown(t *testing.T) {
	more := ""
	for i := range 150 {
		more += fmt.Sprintf(`"m%d":%d,`, i, i)
	}
	m, err := ParseManifest([]byte(strings.Replace(goodManifest, `"column_id"`, more+`"column_id"`, 1)))
	if err != nil || len(m.unknown) != 100 || m.unknown[0] != "tags[0].m0" || m.moreUnknown != 50 {
		t.Errorf("%v: %d, %d more", err, len(m.unknown), m.moreUnknown)
	}
}
