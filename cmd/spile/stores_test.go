package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/spilehq/spile/internal/storetest"
)

// s3Server is an S3 server that the environment names. The command talks to it through a proxy, which counts.
type s3Server struct {
	*storetest.Proxy
	client *minio.Client
}

func startS3(t *testing.T) *s3Server {
	t.Helper()
	address := storetest.VersityGW(t, "bucket")
	proxy := storetest.NewProxy(t, address)
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": storetest.S3AccessKey, "AWS_SECRET_ACCESS_KEY": storetest.S3SecretKey, "AWS_ENDPOINT_URL_S3": proxy.URL,
		"AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true", "HOME": t.TempDir(),
	} {
		t.Setenv(name, value)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := minio.New(address, &minio.Options{
		Creds: credentials.NewStaticV4(storetest.S3AccessKey, storetest.S3SecretKey, ""), Region: "us-east-1", Transport: transport,
	})
	storetest.Must(t, err)
	return &s3Server{proxy, client}
}

// keys lists the objects below a prefix.
func (s *s3Server) keys(t *testing.T, prefix string) (keys []string) {
	t.Helper()
	for o := range s.client.ListObjects(context.Background(), "bucket", minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		storetest.Must(t, o.Err)
		keys = append(keys, o.Key)
	}
	return keys
}

// whole reads an object.
func (s *s3Server) whole(t *testing.T, key string) []byte {
	t.Helper()
	o, err := s.client.GetObject(context.Background(), "bucket", key, minio.GetObjectOptions{})
	storetest.Must(t, err)
	defer o.Close()
	b, err := io.ReadAll(o)
	storetest.Must(t, err)
	return b
}

// unfinished lists the uploads that the server still has parts of.
func (s *s3Server) unfinished(t *testing.T) (keys []string) {
	t.Helper()
	for u := range s.client.ListIncompleteUploads(context.Background(), "bucket", "", true) {
		storetest.Must(t, u.Err)
		keys = append(keys, u.Key)
	}
	return keys
}

// hook sets what may answer a request in the place of the server, until the returned function is called.
func (s *s3Server) hook(f func(http.ResponseWriter, *http.Request) bool) (end func()) {
	s.Before.Store(&f)
	return func() { s.Before.Store(nil) }
}

// hold keeps requests waiting that match, and closes the channel when the first one has come. They end with their connection.
func (s *s3Server) hold(match func(*http.Request) bool) (came <-chan struct{}, end func()) {
	first := make(chan struct{})
	var seen atomic.Bool
	return first, s.hook(func(_ http.ResponseWriter, r *http.Request) bool {
		if !match(r) {
			return false
		}
		if !seen.Swap(true) {
			close(first)
		}
		io.Copy(io.Discard, r.Body) // so that the end of the connection is seen
		<-r.Context().Done()
		return true
	})
}

// good runs a command line that must succeed, and returns standard output.
func good(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, status := command(t, args...)
	if status != statusDone {
		t.Fatalf("spile %s: status %d, %s", strings.Join(args, " "), status, errs)
	}
	return out
}

// bad runs a command line that must end with a status, and say a text.
func bad(t *testing.T, status int, text string, args ...string) {
	t.Helper()
	_, errs, got := command(t, args...)
	if got != status || !strings.Contains(errs, text) {
		t.Errorf("spile %s: status %d, want %d; %s, want %q", strings.Join(args, " "), got, status, errs, text)
	}
	if strings.Contains(errs, storetest.S3SecretKey) {
		t.Errorf("a secret is told: %s", errs)
	}
}

func sameText(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %.300q, want %.300q", what, got, want)
	}
}

// largeJSON is a document of n bytes and some, with small values at both ends.
func largeJSON(n int) []byte {
	b := []byte(`{"first":1,"texts":[`)
	r := rand.New(rand.NewPCG(3, uint64(n)))
	for len(b) < n {
		b = fmt.Appendf(b, `"%016x%s",`, r.Uint64(), strings.Repeat("-", 20_000))
	}
	return append(b, `"end"],"last":{"name":"z"}}`...)
}

// sampleFiles writes files of this machine, and returns their folder.
func sampleFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		storetest.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	return dir
}

// metaJSON is a meta.json of region 1 with a generation that ends with a digit.
func metaJSON(digit int) string {
	generation := fmt.Sprintf("6f1c1f5e-3b0a-4c52-9d6e-0a1b2c3d4e5%d", digit)
	return fmt.Sprintf(`{"format":"columnar-series","version":1,"region_id":1,"generation":"%s","tags":[{"column_id":5,"name":"host"}],
		"coverage":{"file_size":0,"index_uuid":"%[1]s","bucket_start":{"value":%d,"unit":"Second"},"bucket_end":{"value":%d,"unit":"Second"}}}`,
		generation, 1767225600+digit*86400, 1767312000+digit*86400)
}

func folderOf(digit int) string {
	return fmt.Sprintf("1/series/6f1c1f5e-3b0a-4c52-9d6e-0a1b2c3d4e5%d", digit)
}

// seriesLines is n series in JSON Lines, in the order and the form in which they are printed.
func seriesLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"table_id":1025,"tsid":%d,"row_count":%d,"labels":{"host":"web-%06d"}}`+"\n", 10+i, 1+i%7, i)
	}
	return b.String()
}

// TestS3Documents makes documents in a store and reads them there: the bytes and the answers are those of files.
func TestS3Documents(t *testing.T) {
	s := startS3(t)
	dir := sampleFiles(t, map[string]string{"large.json": string(largeJSON(12 << 20)), "small.json": `{"a":[1,2,{"b":3}],"energy":-1.5}`})
	file := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"large", "small"} {
		url := "s3://bucket/doc/" + name + ".msg"
		good(t, "pack", file(name+".json"), "-o", file(name+".msg"))
		good(t, "pack", file(name+".json"), "-o", url)
		local, err := os.ReadFile(file(name + ".msg"))
		storetest.Must(t, err)
		if !bytes.Equal(s.whole(t, "doc/"+name+".msg"), local) {
			t.Errorf("%s: other bytes than those of the file", url)
		}
		for _, args := range [][]string{{"cat", ""}, {"ls", ""}, {"toc", ""}, {"query", "", "keys"}, {"verify", "--deep", ""}} {
			here, there := slices.Clone(args), slices.Clone(args)
			at := slices.Index(args, "")
			here[at], there[at] = file(name+".msg"), url
			sameText(t, strings.Join(there, " "), good(t, there...), good(t, here...))
		}
	}
	large := "s3://bucket/doc/large.msg"
	requests, received := s.Requests.Load(), s.Bytes.Load()
	sameText(t, "get", good(t, "get", large, "last/name"), "\"z\"\n")
	if n, b := s.Requests.Load()-requests, s.Bytes.Load()-received; n > 3 || b > 200_000 {
		t.Errorf("a value of %s takes %d requests and %d bytes", large, n, b)
	}

	// Many at a time.
	sameText(t, "ls of a pattern", strings.Join(strings.Fields(good(t, "get", "s3://bucket/doc/s*.msg", "energy")), ""), `{"file":"s3://bucket/doc/small.msg","value":-1.5}`)
	found := good(t, "find", "s3://bucket/doc/", ".energy")
	sameText(t, "find", found, `{"file":"s3://bucket/doc/large.msg","value":null}`+"\n"+`{"file":"s3://bucket/doc/small.msg","value":-1.5}`+"\n")
	bad(t, statusFailed, "nothing-here.msg", "get", "s3://bucket/nothing-here.msg", "a")
	bad(t, statusFailed, "no file is below it", "find", "s3://bucket/nothing/", ".a")

	// A sidecar beside a plain file is found there.
	good(t, "unpack", large, "-o", "s3://bucket/plain/large.msgpack")
	good(t, "index", "--sidecar", "s3://bucket/plain/large.msgpack")
	requests, received = s.Requests.Load(), s.Bytes.Load()
	sameText(t, "get by a sidecar", good(t, "get", "s3://bucket/plain/large.msgpack", "last/name"), "\"z\"\n")
	if n, b := s.Requests.Load()-requests, s.Bytes.Load()-received; n > 4 || b > 300_000 {
		t.Errorf("a value of a file with a sidecar takes %d requests and %d bytes", n, b)
	}

	// What is there stays.
	before := s.whole(t, "doc/small.msg")
	bad(t, statusFailed, "s3://bucket/doc/small.msg: there is an object under this name", "pack", "--no-overwrite", file("large.json"), "-o", "s3://bucket/doc/small.msg")
	bad(t, statusFailed, "there is an object under this name", "index", "--sidecar", "--no-overwrite", "s3://bucket/plain/large.msgpack")
	if !bytes.Equal(s.whole(t, "doc/small.msg"), before) {
		t.Error("an object was replaced against --no-overwrite")
	}
	good(t, "pack", "--no-overwrite", file("small.json"), "-o", "s3://bucket/doc/new.msg")
	if left := s.unfinished(t); len(left) > 0 {
		t.Errorf("left of uploads: %q", left)
	}
}

// TestS3Combine: the store copies documents that it has, so that of tens of megabytes little goes over the network.
func TestS3Combine(t *testing.T) {
	s := startS3(t)
	dir := sampleFiles(t, map[string]string{"a.json": string(largeJSON(24 << 20)), "b.json": string(largeJSON(16 << 20))})
	file := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"a", "b"} {
		good(t, "pack", file(name+".json"), "-o", file(name+".msg"))
		good(t, "pack", file(name+".json"), "-o", "s3://bucket/"+name+".msg")
	}
	good(t, "combine", "-o", file("both.msg"), "x="+file("a.msg"), "y="+file("b.msg"))
	received, sent := s.Bytes.Load(), s.Sent.Load()
	s.receiptOf(t, "combine", "-o", "s3://bucket/both.msg", "x=s3://bucket/a.msg", "y=s3://bucket/b.msg")
	received, sent = s.Bytes.Load()-received, s.Sent.Load()-sent
	local, err := os.ReadFile(file("both.msg"))
	storetest.Must(t, err)
	if !bytes.Equal(s.whole(t, "both.msg"), local) {
		t.Error("other bytes than those of the file")
	}
	// The first part is held back, and is sent: 5 MiB, the least. What else is read and sent are the heads, and answers in XML.
	if most := int64(5<<20 + 300_000); received > most || sent > most {
		t.Errorf("%d bytes received and %d sent to combine %d, at most %d expected", received, sent, len(local), most)
	}
	sameText(t, "get", good(t, "get", "s3://bucket/both.msg", "y/last/name"), "\"z\"\n")
}

// TestS3Cache: what was read is not asked for again; --offline asks nobody.
func TestS3Cache(t *testing.T) {
	s := startS3(t)
	dir, cache := sampleFiles(t, map[string]string{"a.json": string(largeJSON(8 << 20))}), t.TempDir()
	good(t, "pack", filepath.Join(dir, "a.json"), "-o", "s3://bucket/a.msg")
	get := func(requests int64, flags ...string) {
		t.Helper()
		before := s.Requests.Load()
		sameText(t, "get", good(t, append([]string{"get", "s3://bucket/a.msg", "last/name", "--cache", cache}, flags...)...), "\"z\"\n")
		if n := s.Requests.Load() - before; n > requests {
			t.Errorf("%q: %d requests, want %d", flags, n, requests)
		}
	}
	get(3)
	get(1)
	get(0, "--offline")
	bad(t, statusFailed, "not in the cache", "get", "s3://bucket/a.msg", "texts/200", "--cache", cache, "--offline")
	good(t, "pack", filepath.Join(dir, "a.json"), "--threshold", "100", "-o", "s3://bucket/a.msg")
	get(3)

	// That there is no sidecar is kept, too, until one is made.
	good(t, "unpack", "s3://bucket/a.msg", "-o", "s3://bucket/a.msgpack")
	for run, want := range []int64{6, 1, 1} {
		before := s.Requests.Load()
		sameText(t, "get", good(t, "get", "s3://bucket/a.msgpack", "first", "--cache", cache), "1\n")
		if n := s.Requests.Load() - before; n > want {
			t.Errorf("run %d of a file without a sidecar takes %d requests, want %d", run, n, want)
		}
	}
	good(t, "index", "--sidecar", "s3://bucket/a.msgpack", "--cache", cache)
	before := s.Bytes.Load()
	sameText(t, "get", good(t, "get", "s3://bucket/a.msgpack", "last/name", "--cache", cache), "\"z\"\n")
	if n := s.Bytes.Load() - before; n > 300_000 {
		t.Errorf("%d bytes: the sidecar that was made is not used", n)
	}
}

// TestS3Interrupted ends processes while they upload: neither an object nor parts of one are left.
func TestS3Interrupted(t *testing.T) {
	s := startS3(t)
	dir := sampleFiles(t, map[string]string{"a.json": string(largeJSON(60 << 20)), "meta.json": metaJSON(1), "series.jsonl": seriesLines(50)})
	parts := func(r *http.Request) bool { return r.Method == "PUT" && r.URL.Query().Get("partNumber") > "3" }
	for name, args := range map[string][]string{
		"document": {"pack", filepath.Join(dir, "a.json"), "-o", "s3://bucket/a.msg"},
		"series":   {"series", "build", "--meta", filepath.Join(dir, "meta.json"), "--block-series", "5", "--part-bytes", "1", filepath.Join(dir, "series.jsonl"), "-o", "s3://bucket"},
	} {
		t.Run(name, func(t *testing.T) {
			match := parts
			if name == "series" {
				match = func(r *http.Request) bool {
					return r.Method == "PUT" && strings.HasSuffix(r.URL.Path, "/part-3.series")
				}
			}
			came, end := s.hold(match)
			defer end()
			p := start(t, nil, append(args, "--stats")...)
			<-came
			if name == "series" && len(s.keys(t, folderOf(1))) != 3 {
				t.Errorf("before the interrupt: %q", s.keys(t, ""))
			}
			p.interrupt(t, syscall.SIGINT, t.TempDir())
			if keys, left := s.keys(t, ""), s.unfinished(t); len(keys)+len(left) > 0 {
				t.Errorf("left: %q, and uploads of %q", keys, left)
			}
		})
	}
}

// TestS3Killed: a build that is killed leaves parts that nothing refers to, and another one of the generation leaves them alone.
func TestS3Killed(t *testing.T) {
	s := startS3(t)
	dir := sampleFiles(t, map[string]string{"1.json": metaJSON(1), "2.json": metaJSON(2), "series.jsonl": seriesLines(50)})
	build := func(meta string) []string {
		return []string{"series", "build", "--meta", filepath.Join(dir, meta), "--block-series", "5", "--part-bytes", "1", filepath.Join(dir, "series.jsonl"), "-o", "s3://bucket/k/"}
	}
	came, end := s.hold(func(r *http.Request) bool {
		return r.Method == "PUT" && strings.HasSuffix(r.URL.Path, "/part-2.series")
	})
	p := start(t, nil, build("1.json")...)
	<-came
	storetest.Must(t, p.Process.Kill())
	p.end(t)
	end()
	left := []string{"k/" + folderOf(1) + "/part-0.series", "k/" + folderOf(1) + "/part-1.series"}
	if keys := s.keys(t, ""); !slices.Equal(keys, left) {
		t.Errorf("left %q, expected %q", keys, left)
	}
	bad(t, statusFailed, "manifest.json", "cat", "s3://bucket/k/"+folderOf(1)+"/")
	bad(t, statusFailed, "part-0.series: is there without a manifest", build("1.json")...)
	if keys := s.keys(t, ""); !slices.Equal(keys, left) {
		t.Errorf("another build has left %q of what it has not made, expected %q", keys, left)
	}
	good(t, build("2.json")...)
	sameText(t, "cat", good(t, "cat", "s3://bucket/k/"+folderOf(2)+"/"), seriesLines(50))
}

// TestS3Series builds artifacts in a store, merges them there and reads them: one by its URL, and all below a prefix.
func TestS3Series(t *testing.T) {
	s := startS3(t)
	dir := sampleFiles(t, map[string]string{"1.json": metaJSON(1), "2.json": metaJSON(2), "3.json": metaJSON(3), "series.jsonl": seriesLines(60_000)})
	file := func(name string) string { return filepath.Join(dir, name) }
	flags := []string{"--block-series", "512", "--page-bytes", "2000", "--part-bytes", "300000"}
	for digit := 1; digit <= 2; digit++ {
		build := append([]string{"series", "build", "--meta", file(fmt.Sprint(digit, ".json")), file("series.jsonl")}, flags...)
		good(t, append(build, "-o", file("out"))...)
		good(t, append(build, "-o", "s3://bucket/a/b")...)
		bad(t, statusFailed, "a generation is used once", append(build, "-o", "s3://bucket/a/b/")...)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "out", folderOf(1)))
	storetest.Must(t, err)
	if len(entries) < 3 {
		t.Fatalf("%d objects, expected some parts", len(entries))
	}
	for _, entry := range entries {
		local, err := os.ReadFile(filepath.Join(dir, "out", folderOf(1), entry.Name()))
		storetest.Must(t, err)
		if !bytes.Equal(s.whole(t, "a/b/"+folderOf(1)+"/"+entry.Name()), local) {
			t.Errorf("%s: other bytes than those of the file", entry.Name())
		}
	}
	one, local := "s3://bucket/a/b/"+folderOf(1)+"/", filepath.Join(dir, "out", folderOf(1))
	for _, args := range [][]string{
		{"cat", ""}, {"ls", ""}, {"get", "", "1025/777"}, {"series", "select", "", `{host=~"web-0000[123].*"}`}, {"series", "select", "", "{}", "--count"},
		{"series", "values", "", "host"}, {"series", "labels", ""}, {"verify", ""}, {"verify", "--deep", ""},
	} {
		here, there := slices.Clone(args), slices.Clone(args)
		at := slices.Index(args, "")
		here[at], there[at] = local, one
		sameText(t, strings.Join(there, " "), good(t, there...), good(t, here...))
	}

	// A lookup of one series in a part is the manifest and four requests at most.
	good(t, "series", "build", "--meta", file("3.json"), file("series.jsonl"), "--block-series", "512", "--page-bytes", "2000", "-o", "s3://bucket/c")
	part := "s3://bucket/c/" + folderOf(3) + "/"
	for _, args := range [][]string{{"series", "select", part, `{host="web-031234"}`}, {"get", part, "1025/31244"}, {"get", one, "1025/31244"}} {
		requests := s.Requests.Load()
		out := good(t, append(args, "--stats")...)
		n := s.Requests.Load() - requests
		t.Logf("%q takes %d requests", args, n)
		if n > 5 || !strings.Contains(out, "web-031234") {
			t.Errorf("%q takes %d requests: %s", args, n, out)
		}
	}

	// Those that a pattern matches are printed one by one; all below a prefix are answered from as one.
	want := ""
	for digit := 1; digit <= 2; digit++ {
		want += fmt.Sprintf(`{"file":"s3://bucket/a/b/%s/","value":{"table_id":1025,"tsid":17,"row_count":1,"labels":{"host":"web-000007"}}}`+"\n", folderOf(digit))
	}
	sameText(t, "pattern", good(t, "series", "select", "s3://bucket/a/**/series/*/", `{host="web-000007"}`), want)
	for _, many := range []string{"s3://bucket/a/", "s3://bucket/a/b/"} {
		sameText(t, many, good(t, "series", "select", many, `{host="web-000007"}`), `{"table_id":1025,"tsid":17,"row_count":2,"labels":{"host":"web-000007"}}`+"\n")
		sameText(t, many, good(t, "series", "select", many, "{}", "--count"), good(t, "series", "select", file("out"), "{}", "--count"))
	}
	sameText(t, "values", good(t, "series", "values", "s3://bucket/a/", "host", "--match", `{host="web-000007"}`), "web-000007\n")
	var reports []struct{ File string }
	storetest.Must(t, json.Unmarshal([]byte(good(t, "verify", "--json", "s3://bucket/a/")), &reports))
	if len(reports) != 2 || reports[0].File != one {
		t.Errorf("verify: %+v", reports)
	}
	if out := good(t, "ls", "s3://bucket/a/"); strings.Count(out, "==> ") != 2 {
		t.Errorf("ls: %s", out)
	}
	bad(t, statusFailed, "nothing/manifest.json", "series", "select", "s3://bucket/nothing/", "{}")

	good(t, "series", "merge", "s3://bucket/a/b/1/series/*/", "-o", "s3://bucket/merged")
	good(t, "series", "merge", filepath.Join(dir, "out", folderOf(1)), filepath.Join(dir, "out", folderOf(2)), "-o", file("merged"))
	merged, err := filepath.Glob(file("merged/1/series/*"))
	storetest.Must(t, err)
	sameText(t, "merged", good(t, "cat", "s3://bucket/merged/1/series/"+filepath.Base(merged[0])+"/"), good(t, "cat", merged[0]))

	// An object that nothing refers to is told of.
	_, err = s.client.PutObject(t.Context(), "bucket", "a/b/"+folderOf(1)+"/part-99.series", strings.NewReader("x"), 1, minio.PutObjectOptions{})
	storetest.Must(t, err)
	if _, errs, status := command(t, "verify", one); status != statusDone || !strings.Contains(errs, "another object lies beside the artifact: part-99.series") {
		t.Errorf("verify: %d, %s", status, errs)
	}
}

// TestS3SeriesFails: a build that fails removes its own objects, and no others.
func TestS3SeriesFails(t *testing.T) {
	s := startS3(t)
	lines := seriesLines(30)
	dir := sampleFiles(t, map[string]string{"meta.json": metaJSON(1), "good.jsonl": lines,
		"bad.jsonl": lines + `{"table_id":1025,"tsid":39,"row_count":1,"labels":{"host":"other"}}` + "\n"})
	folder := folderOf(1) + "/"
	build := func(input string) []string {
		return []string{"series", "build", "--meta", filepath.Join(dir, "meta.json"), "--block-series", "5", "--part-bytes", "1", filepath.Join(dir, input), "-o", "s3://bucket"}
	}
	put := func(key, text string) {
		t.Helper()
		_, err := s.client.PutObject(context.Background(), "bucket", key, strings.NewReader(text), int64(len(text)), minio.PutObjectOptions{})
		storetest.Must(t, err)
	}
	put(folder+"note.txt", "of somebody else")
	expect := func(what string, keys ...string) {
		t.Helper()
		for i := range keys {
			keys[i] = folder + keys[i]
		}
		if got := s.keys(t, ""); !slices.Equal(got, keys) {
			t.Errorf("%s: left %q, expected %q", what, got, keys)
		}
	}
	bad(t, statusFailed, "host", build("bad.jsonl")...)
	expect("a bad record", "note.txt")

	// Somebody replaces a part, or takes the name of the manifest, before it is written.
	manifest := func(r *http.Request) bool {
		return r.Method == "PUT" && strings.HasSuffix(r.URL.Path, "/manifest.json")
	}
	end := s.hook(func(_ http.ResponseWriter, r *http.Request) bool {
		if manifest(r) {
			put(folder+"part-1.series", "of somebody else")
			put(folder+"manifest.json", "of somebody else")
		}
		return false
	})
	bad(t, statusFailed, "a generation is used once", build("good.jsonl")...)
	end()
	expect("another manifest", "manifest.json", "note.txt", "part-1.series")
	for _, key := range []string{"manifest.json", "part-1.series"} {
		storetest.Must(t, s.client.RemoveObject(t.Context(), "bucket", folder+key, minio.RemoveObjectOptions{}))
	}

	// The store makes the manifest, and its answer is lost: the artifact is there, and the build has succeeded.
	lost := 0
	end = s.hook(func(_ http.ResponseWriter, r *http.Request) bool {
		if !manifest(r) || lost > 0 {
			return false
		}
		lost++
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		put(folder+"manifest.json", string(text))
		panic(http.ErrAbortHandler)
	})
	good(t, build("good.jsonl")...)
	end()
	if lost != 1 {
		t.Errorf("%d answers lost", lost)
	}
	sameText(t, "cat", good(t, "cat", "s3://bucket/"+folder), lines)
}

// TestGCS and TestAzure: the verbs work with the other stores as well.
func TestGCS(t *testing.T) {
	address := storetest.FakeGCS(t, "bucket")
	for name, value := range map[string]string{"STORAGE_EMULATOR_HOST": address, "HOME": t.TempDir(), "GOOGLE_APPLICATION_CREDENTIALS": ""} {
		t.Setenv(name, value)
	}
	testStore(t, "gs://bucket/")
}

func TestAzure(t *testing.T) {
	const account = "testaccount"
	key := base64.StdEncoding.EncodeToString([]byte("a key that nobody may see, of some length"))
	address := storetest.Azurite(t, account, key)
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AZURE_") {
			t.Setenv(name, "")
		}
	}
	for name, value := range map[string]string{
		"AZURE_STORAGE_ACCOUNT": account, "AZURE_STORAGE_KEY": key, "AZURE_STORAGE_SERVICE_ENDPOINT": "http://" + address + "/" + account, "HOME": t.TempDir(),
	} {
		t.Setenv(name, value)
	}
	storetest.Must(t, makeContainer(t.Context(), "http://"+address+"/"+account, account, key, "container"))
	testStore(t, "azblob://container/")
}

func testStore(t *testing.T, prefix string) {
	dir := sampleFiles(t, map[string]string{
		"large.json": string(largeJSON(12 << 20)), "small.json": `{"energy":-1.5}`, "meta.json": metaJSON(1), "series.jsonl": seriesLines(1000),
		"bad.jsonl": seriesLines(30) + `{"table_id":1025,"tsid":39,"row_count":1,"labels":{"host":"other"}}` + "\n",
	})
	file := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"large", "small"} {
		good(t, "pack", file(name+".json"), "-o", file(name+".msg"))
		good(t, "pack", "--no-overwrite", file(name+".json"), "-o", prefix+"doc/"+name+".msg")
		sameText(t, name, good(t, "cat", prefix+"doc/"+name+".msg"), good(t, "cat", file(name+".msg")))
	}
	sameText(t, "get", good(t, "get", prefix+"doc/large.msg", "last/name"), "\"z\"\n")
	sameText(t, "find", good(t, "find", prefix+"doc/", ".energy"),
		fmt.Sprintf(`{"file":"%sdoc/large.msg","value":null}`+"\n"+`{"file":"%[1]sdoc/small.msg","value":-1.5}`+"\n", prefix))
	bad(t, statusFailed, "is not to be replaced", "pack", "--no-overwrite", file("large.json"), "-o", prefix+"doc/small.msg")
	good(t, "combine", "-o", prefix+"both.msg", "x="+prefix+"doc/large.msg", "y="+prefix+"doc/small.msg")
	sameText(t, "combine", good(t, "get", prefix+"both.msg", "y/energy"), "-1.5\n")

	build := func(input string) []string {
		return []string{"series", "build", "--meta", file("meta.json"), "--block-series", "5", "--part-bytes", "1000", file(input), "-o", prefix + "s"}
	}
	bad(t, statusFailed, "host", build("bad.jsonl")...)
	bad(t, statusFailed, "no file is below it", "find", prefix+"s/", ".")
	good(t, build("series.jsonl")...)
	sameText(t, "cat", good(t, "cat", prefix+"s/"+folderOf(1)+"/"), seriesLines(1000))
	sameText(t, "select", good(t, "series", "select", prefix+"s/", `{host="web-000007"}`),
		`{"table_id":1025,"tsid":17,"row_count":1,"labels":{"host":"web-000007"}}`+"\n")
	good(t, "verify", "--deep", prefix+"s/")
	bad(t, statusFailed, "a generation is used once", build("series.jsonl")...)
}

// makeContainer makes a container of Azurite.
func makeContainer(ctx context.Context, endpoint, account, key, name string) error {
	credential, err := service.NewSharedKeyCredential(account, key)
	if err != nil {
		return err
	}
	client, err := service.NewClientWithSharedKeyCredential(endpoint, credential, nil)
	if err != nil {
		return err
	}
	_, err = client.CreateContainer(ctx, name, nil)
	return err
}
