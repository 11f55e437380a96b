package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spilehq/spile/internal/rangetest"
	"github.com/spilehq/spile/internal/storetest"
	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/tcb"
	"github.com/spilehq/spile/value"
)

// receiptOf runs the command on an object of a server, and returns what it prints and its receipt, which must be what the server
// has counted.
func receiptOf(t *testing.T, server *rangetest.Server, args ...string) (string, source.Receipt) {
	t.Helper()
	server.Reset()
	out, errs, status := command(t, append([]string{args[0], "--stats"}, args[1:]...)...)
	var receipt source.Receipt
	if err := json.Unmarshal([]byte(errs), &receipt); err != nil || status != statusDone {
		t.Fatalf("%s: status %d, %s", args[0], status, errs)
	}
	if seen := server.Requests(); receipt.Requests != int64(len(seen)) || receipt.Bytes != server.Bytes() {
		t.Errorf("%s: %+v, the server has seen %q and sent %d bytes", args[0], receipt, seen, server.Bytes())
	}
	return out, receipt
}

// TestGetManyOfURL reads a thousand values at random by one run.
func TestGetManyOfURL(t *testing.T) {
	runs := make([]any, 20_000)
	for i := range runs {
		runs[i] = value.OrderedMap{{Key: "name", Value: fmt.Sprintf("run %d", i)}, {Key: "tail", Value: strings.Repeat("x", 500)}}
	}
	file, err := msglc.Dumps(map[string]any{"runs": runs}, &msglc.WriteOptions{Threshold: 64})
	if err != nil {
		t.Fatal(err)
	}
	server := rangetest.New(t)
	args := []string{"get", server.Put("/runs.msg", file)}
	dice := rand.New(rand.NewPCG(1, 2))
	var want strings.Builder
	for range 1000 {
		i := dice.IntN(len(runs))
		args = append(args, fmt.Sprintf("runs/%d/name", i))
		fmt.Fprintf(&want, "\"run %d\"\n", i)
	}
	out, receipt := receiptOf(t, server, args...)
	if out != want.String() || receipt.Requests > 8 {
		t.Errorf("%d requests, %d bytes of output, want %d", receipt.Requests, len(out), want.Len())
	}
}

// TestPlainOfURL pins that a plain file comes over the network once, however many steps of paths are scans of it.
func TestPlainOfURL(t *testing.T) {
	list := make([]any, 100_000)
	for i := range list {
		list[i] = map[string]any{"name": fmt.Sprintf("run %d", i), "tail": strings.Repeat("y", 60)}
	}
	for _, codec := range []value.Codec{value.Msgpack, value.CBOR} {
		file, err := value.Append(nil, codec, map[string]any{"runs": list})
		if err != nil {
			t.Fatal(err)
		}
		server := rangetest.New(t)
		at := server.Put("/plain", file)
		for _, args := range [][]string{
			{"get", at, "runs/99999/name", "runs/-2/name"}, {"get", at, "runs/5/name", "runs/:3"}, {"ls", at, "runs/7"}, {"cat", at},
			{"verify", "--deep", at}, {"verify", at}, {"du", at}, {"query", at, ".runs[99998].name"}, {"query", at, "[.runs[].name] | length"},
		} {
			// The sidecar that is not there is asked for, too.
			if _, receipt := receiptOf(t, server, args...); receipt.Bytes > int64(len(file))+100 {
				t.Errorf("%s %s %q: %d bytes of %d: %q", codec, args[0], args[len(args)-1], receipt.Bytes, len(file), server.Requests())
			}
		}
	}
}

// TestCellsOfURL reads cells of several columns by one run: each column once, and together.
func TestCellsOfURL(t *testing.T) {
	const rows = 20_000
	dice := rand.New(rand.NewPCG(3, 4))
	var columns []*tcb.Column
	for tag := range int32(6) {
		values := make([]int64, rows)
		for i := range values {
			values[i] = dice.Int64()
		}
		columns = append(columns, &tcb.Column{Tag: tag + 1, Type: tcb.Type{Element: tcb.I64}, Rows: rows, Int64s: values})
	}
	var file bytes.Buffer
	if err := tcb.Write(&file, rows, columns, nil); err != nil {
		t.Fatal(err)
	}
	server := rangetest.New(t)
	at := server.Put("/cells.tcb", file.Bytes())
	args, want := []string{"get", at}, ""
	for i := range 50 {
		row, tag := i*397%rows, 2+i%3
		args = append(args, fmt.Sprintf("%d/%d", row, tag))
		want += fmt.Sprintln(columns[tag-1].Int64s[row])
	}
	out, receipt := receiptOf(t, server, args...)
	if out != want || receipt.Requests > 2 || receipt.Bytes > int64(file.Len()) {
		t.Errorf("%q, want %q; %d requests, %d bytes of %d", out, want, receipt.Requests, receipt.Bytes, file.Len())
	}
}

// TestSeriesOfURL looks a thousand series up by one run, and as many labels, in the order in which they are asked for.
func TestSeriesOfURL(t *testing.T) {
	dir := sampleFiles(t, map[string]string{"meta.json": metaJSON(1), "series.jsonl": seriesLines(60_000)})
	good(t, "series", "build", "--meta", filepath.Join(dir, "meta.json"), "--block-series", "500", filepath.Join(dir, "series.jsonl"), "-o", filepath.Join(dir, "out"))
	server := rangetest.New(t)
	at := ""
	for _, name := range []string{"part-0.series", "manifest.json"} {
		content, err := os.ReadFile(filepath.Join(dir, "out", folderOf(1), name))
		storetest.Must(t, err)
		at = server.Put("/"+folderOf(1)+"/"+name, content)
	}
	args := []string{"get", at}
	dice := rand.New(rand.NewPCG(1, 2))
	var want strings.Builder
	for k := range 1000 {
		i := dice.IntN(60_000)
		path := fmt.Sprintf("1025/%d", 10+i)
		if k%2 == 0 {
			path += "/host"
			fmt.Fprintf(&want, "\"web-%06d\"\n", i)
		} else {
			fmt.Fprintf(&want, `{"table_id":1025,"tsid":%d,"row_count":%d,"labels":{"host":"web-%06d"}}`+"\n", 10+i, 1+i%7, i)
		}
		args = append(args, path)
	}
	out, receipt := receiptOf(t, server, args...)
	if out != want.String() || receipt.Requests > 5 {
		t.Errorf("%d requests, %d bytes of output, want %d", receipt.Requests, len(out), want.Len())
	}
	// What stands in front of one that is not there is printed, and so is what is no single series.
	args = []string{"get", at, "1025/12", "1025/11/host", "1025/999999", "1025/13"}
	if out, errs, status := command(t, args...); out != seriesLines(3)[len(seriesLines(2)):]+"\"web-000001\"\n" || status != statusFailed || !strings.Contains(errs, "1025/999999: there is no such series") {
		t.Errorf("%s, %s, %d", out, errs, status)
	}
	lines := strings.Split(good(t, "get", at, "1025/12/host", "part-0/0/0/host", "1025/13/host"), "\n")
	if len(lines) != 4 || lines[0] != `"web-000002"` || !strings.HasPrefix(lines[1], `["web-000000","web-000001",`) || lines[2] != `"web-000003"` {
		t.Errorf("a block between series: %.200q", lines)
	}
}

// TestBeside: what is beside an object has its folder as the URL writes it, its credentials and its query.
func TestBeside(t *testing.T) {
	for _, tt := range [][3]string{
		{"http://h/a/b/manifest.json", "part-1.series", "http://h/a/b/part-1.series"},
		{"http://u:p@h/a%2Fb/manifest.json?sig=1", "part-1.series", "http://u:p@h/a%2Fb/part-1.series?sig=1"},
		{"http://h/a%20b%3F/x", "c d", "http://h/a%20b%3F/c%20d"},
		{"http://h//evil/x", "y", "http://h//evil/y"},
		{"http://h/a/x", "", "http://h/a/"},
		{"s3://bucket/a%2Fb/x?versionId=1", "y", "s3://bucket/a%2Fb/y"},
	} {
		if got := beside(tt[0], tt[1]); got != tt[2] {
			t.Errorf("%s beside %s is %s, want %s", tt[1], tt[0], got, tt[2])
		}
	}
}

// TestSignedURLs: the URL of a store that holds a signature is refused and not repeated, whatever stands in it beside.
func TestSignedURLs(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1", "STORAGE_EMULATOR_HOST": "127.0.0.1:1", "AWS_NO_SIGN_REQUEST": "yes", // nobody is asked
		"AZURE_NO_SIGN_REQUEST": "yes", "AZURE_STORAGE_ACCOUNT": "a", "HOME": t.TempDir(),
	} {
		t.Setenv(name, value)
	}
	dir := sampleFiles(t, map[string]string{"a.json": `{"a":1}`})
	for _, url := range []string{
		"s3://bucket/key?X-Amz-Signature=geheim", "s3://bucket/[a?X-Amz-Signature=geheim", "s3://bucket/*.msg?x=1&X-Amz-Signature=geheim", "s3://me:geheim@bucket/*",
		"gs://bucket/key?X-Goog-Signature=geheim", "azblob://a.blob.core.windows.net/box/key?sv=1&sig=geheim", "azblob://box/?sig=geheim",
	} {
		for _, args := range [][]string{
			{"get", url, "a"}, {"ls", url}, {"cat", url}, {"verify", url}, {"find", url, "."}, {"query", url, "."}, {"pack", url, "-o", dir + "/x"}, {"pack", dir + "/a.json", "-o", url},
			{"combine", "-o", url, dir + "/a.json"}, {"combine", "-o", dir + "/x", "b=" + url, "b=" + url}, {"index", "--sidecar", url}, {"series", "select", url, "{}"},
			{"series", "build", "--meta", dir + "/a.json", dir + "/a.json", "-o", url}, {"table", "schema", url}, {"series", "merge", url, url, "-o", dir + "/y"},
			{"get", url, "a", "--offline", "--cache", dir + "/cache"},
		} {
			out, errs, status := command(t, args...)
			if status == statusDone || strings.Contains(out+errs, "geheim") || strings.Count(errs, "\n") != 1 {
				t.Errorf("spile %s: status %d, %s%s", strings.Join(args, " "), status, out, errs)
			}
		}
	}
}
