package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// server is spile serve as a process of its own.
type server struct {
	*process
	url   string
	lines []string // of standard error, before the one that says where it is
	rest  chan []string
}

var servedAt = regexp.MustCompile(`^spile: serving \d+ artifacts? at (http://\S+)$`)

// startServer starts a server and waits until it can be asked.
func startServer(t *testing.T, args ...string) *server {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no signal that asks a process to end")
	}
	s := &server{rest: make(chan []string, 1)}
	var errs io.ReadCloser
	s.process = start(t, func(p *process) {
		p.Stderr = nil
		errs, _ = p.StderrPipe()
	}, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	in := bufio.NewScanner(errs)
	for in.Scan() {
		if m := servedAt.FindStringSubmatch(in.Text()); m != nil {
			s.url = m[1]
			break
		}
		s.lines = append(s.lines, in.Text())
	}
	if s.url == "" {
		t.Fatalf("it does not serve: %q", s.lines)
	}
	go func() {
		var lines []string
		for in.Scan() {
			lines = append(lines, in.Text())
		}
		s.rest <- lines
	}()
	return s
}

// stop asks the server to end, and returns its status and what it has said since it served.
func (s *server) stop(t *testing.T, signal os.Signal) (status int, lines []string) {
	t.Helper()
	if err := s.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	lines = <-s.rest // its standard error ends with it
	return s.end(t), lines
}

func (s *server) get(t *testing.T, path string) (code int, body string) {
	t.Helper()
	res, err := http.Get(s.url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// buildHosts builds an artifact of a bucket that now is in, of n series in table 1025.
func buildHosts(t *testing.T, root string, generation byte, n int) (dir string) {
	t.Helper()
	id := fmt.Sprintf("6f1c1f5e-3b0a-4c52-9d6e-0a1b2c3d4e%02x", generation)
	meta := fmt.Sprintf(`{"format":"columnar-series","version":1,"region_id":1,"generation":%q,"tags":[{"column_id":5,"name":"host"},{"column_id":6,"name":"zone"}],
		"coverage":{"file_size":0,"index_uuid":%[1]q,"bucket_start":{"value":%d,"unit":"Second"},"bucket_end":{"value":%d,"unit":"Second"}}}`,
		id, time.Now().Unix()-3600, time.Now().Unix()+3600)
	in := t.TempDir()
	if err := os.WriteFile(filepath.Join(in, "meta.json"), []byte(meta), 0o666); err != nil {
		t.Fatal(err)
	}
	var records bytes.Buffer
	for i := range n {
		fmt.Fprintf(&records, `{"table_id":1025,"tsid":%d,"row_count":1,"labels":{"host":"web-%d","zone":"z%d"}}`+"\n", i, i, i%3)
	}
	if err := os.WriteFile(filepath.Join(in, "records"), records.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, errs, status := command(t, "series", "build", "--meta", filepath.Join(in, "meta.json"), filepath.Join(in, "records"), "-o", root); status != 0 {
		t.Fatal(errs)
	}
	return filepath.Join(root, "1", "series", id)
}

const allHosts = "/api/v1/series?match[]=" + "%7Bhost%3D~%22.%2B%22%7D"

// narrow is a client that takes little before it is read, whatever the system would buffer.
func narrow() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, network, address)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(64 << 10)
		}
		return conn, err
	}}}
}

func TestServe(t *testing.T) {
	root := t.TempDir()
	buildHosts(t, root, 1, 3)
	tables := filepath.Join(t.TempDir(), "tables.csv")
	if err := os.WriteFile(tables, []byte("id,name\n1025,up\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, "--stats", "--access-log", "--tables", tables, root)
	for path, want := range map[string]string{
		"/api/v1/series?" + url.Values{"match[]": {`up{host="web-1"}`}}.Encode(): `{"status":"success","data":[{"__name__":"up","host":"web-1","zone":"z1"}]}`,
		"/api/v1/labels":                    `{"status":"success","data":["__name__","host","zone"]}`,
		"/api/v1/label/host/values?limit=2": `{"status":"success","data":["web-0","web-1"],"warnings":["results truncated due to limit"]}`,
		"/-/ready":                          "Spile is ready.\n",
	} {
		if code, body := s.get(t, path); code != 200 || body != want {
			t.Errorf("%s: %d %s, want %s", path, code, body, want)
		}
	}
	if code, body := s.get(t, "/metrics"); code != 200 || !strings.Contains(body, "spile_open_artifacts 1\n") || strings.Contains(body, "spile_source_reads_total 0\n") {
		t.Errorf("metrics: %d %s", code, body)
	}
	// A page in a browser of this machine may ask by a name of its own.
	r, err := http.NewRequest("GET", s.url+"/api/v1/labels", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "evil.example:80"
	if res, err := http.DefaultClient.Do(r); err != nil || res.StatusCode != 403 {
		t.Errorf("another host: %v %v", res, err)
	} else {
		res.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	status, lines := s.stop(t, os.Interrupt)
	text := strings.Join(lines, "\n")
	if status != 0 || s.lines != nil || !strings.HasPrefix(lines[len(lines)-1], `{"size":`) {
		t.Errorf("status %d, %q %q", status, s.lines, lines)
	}
	if !strings.Contains(text, "spile: GET /api/v1/label/host/values 200 ") || strings.Contains(text, "limit") {
		t.Errorf("the access log: %s", text)
	}
}

func TestServeBadArtifact(t *testing.T) {
	root := t.TempDir()
	bad := filepath.Join(buildHosts(t, root, 1, 3), "manifest.json")
	buildHosts(t, root, 2, 1)
	if err := os.WriteFile(bad, []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, root)
	if len(s.lines) != 1 || !strings.HasPrefix(s.lines[0], "spile: left out: "+bad+": check 2: ") {
		t.Errorf("it says %q", s.lines)
	}
	code, body := s.get(t, allHosts)
	if code != 200 || !strings.HasPrefix(body, `{"status":"success","data":[{"host":"web-0","zone":"z0"}],"warnings":["left out: `+bad) {
		t.Errorf("%d %s", code, body)
	}
	http.DefaultClient.CloseIdleConnections()
	if status, lines := s.stop(t, syscall.SIGTERM); status != statusPartial || len(lines) != 0 {
		t.Errorf("status %d, %q", status, lines)
	}
	if _, errs, status := command(t, "serve", "--strict", "--listen", "127.0.0.1:0", root); status != statusFailed || !strings.HasPrefix(errs, "spile: "+bad+": ") {
		t.Errorf("strict: %d %s", status, errs)
	}
}

// A signal to end lets a request end that runs, and lets none begin.
func TestServeEnds(t *testing.T) {
	root := t.TempDir()
	buildHosts(t, root, 1, 400_000)
	s := startServer(t, "--shutdown-timeout", "50s", root)
	res, err := narrow().Get(s.url + allHosts)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	first := make([]byte, 1000)
	if _, err := io.ReadFull(res.Body, first); err != nil {
		t.Fatal(err)
	}
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	until(t, "it listens no more", func() bool {
		again, err := http.Get(s.url + "/-/ready")
		if err == nil {
			again.Body.Close()
		}
		return err != nil
	})
	rest, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var e struct {
		Status string
		Data   []map[string]string
	}
	if err := json.Unmarshal(append(first, rest...), &e); err != nil || e.Status != "success" || len(e.Data) != 400_000 {
		t.Errorf("%s, %d series, %v", e.Status, len(e.Data), err)
	}
	lines := <-s.rest
	if status := s.end(t); status != 0 || len(lines) != 0 {
		t.Errorf("status %d, %q", status, lines)
	}
}

// A request that does not end in time is ended.
func TestServeEndsInTime(t *testing.T) {
	root := t.TempDir()
	buildHosts(t, root, 1, 400_000)
	s := startServer(t, "--shutdown-timeout", "1ms", root)
	res, err := narrow().Get(s.url + allHosts)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	status, lines := s.stop(t, syscall.SIGTERM) // nobody reads the answer
	if status != 0 || len(lines) != 1 || lines[0] != "spile: requests that ran longer than 1ms were ended" {
		t.Errorf("status %d, %q", status, lines)
	}
	if _, err := io.ReadAll(res.Body); err == nil {
		t.Error("the answer is complete")
	}
}

// TestPromtool asks by a client that nobody here wrote: promtool of Prometheus, which SPILE_PROMTOOL names.
func TestPromtool(t *testing.T) {
	promtool := os.Getenv("SPILE_PROMTOOL")
	if promtool == "" {
		t.Skip("SPILE_PROMTOOL names no promtool")
	}
	root := t.TempDir()
	buildHosts(t, root, 1, 12)
	tables := filepath.Join(t.TempDir(), "tables.csv")
	if err := os.WriteFile(tables, []byte("1025,up\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	plain, named := startServer(t, root), startServer(t, "--tables", tables, root)
	run := func(args ...string) (string, error) {
		out, err := exec.Command(promtool, args...).CombinedOutput()
		return string(out), err
	}
	lines := func(n int, line string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, strings.ReplaceAll(line, "#", "%[1]d")+"\n", i)
		}
		return b.String()
	}
	then := fmt.Sprint(time.Now().Unix() - 7200)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"series", `--match={host=~".+"}`, plain.url}, ""},
		{[]string{"series", `--match={host="web-7"}`, named.url}, `{__name__="up", host="web-7", zone="z1"}` + "\n"},
		{[]string{"series", `--match=up{host="web-7"}`, `--match={host=~"web-[78]"}`, "-o", "json", named.url},
			`[{"__name__":"up","host":"web-7","zone":"z1"},{"__name__":"up","host":"web-8","zone":"z2"}]` + "\n"},
		{[]string{"series", `--match={host=~".+"}`, "--end", then, plain.url}, ""},
		{[]string{"labels", plain.url, "zone"}, lines(3, "z#")},
		{[]string{"labels", named.url, "__name__"}, "up\n"},
		{[]string{"labels", plain.url, "nothing"}, ""},
	} {
		out, err := run(append([]string{"query"}, c.args...)...)
		if err != nil {
			t.Errorf("%q: %v\n%s", c.args, err, out)
		}
		switch {
		case c.want == "" && len(c.args) == 3 && c.args[0] == "series": // all, in no order that is promised by promtool
			for i := range 12 {
				if !strings.Contains(out, fmt.Sprintf(`host="web-%d"`, i)) {
					t.Errorf("%q: no web-%d in\n%s", c.args, i, out)
				}
			}
		case out != c.want:
			t.Errorf("%q:\n%s, want\n%s", c.args, out, c.want)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"series", "--match=up", plain.url}, "bad_data: "},
		{[]string{"series", "--match={", plain.url}, "bad_data: "},
		{[]string{"instant", plain.url, "1+1"}, "execution: series, label names and label values are answered here"},
	} {
		if out, err := run(append([]string{"query"}, c.args...)...); err == nil || !strings.Contains(out, c.want) {
			t.Errorf("%q: %v\n%s, want %s", c.args, err, out, c.want)
		}
	}
	for _, s := range []*server{plain, named} {
		if status, lines := s.stop(t, os.Interrupt); status != 0 || len(lines) != 0 {
			t.Errorf("status %d, %q", status, lines)
		}
	}
}
