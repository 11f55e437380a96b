package interop

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
)

// original is the Python package, running as a child process for all the tests.
type original struct {
	mu  sync.Mutex
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader

	Msglc string `json:"msglc"` // the version
	Numpy bool   `json:"numpy"`
	Rust  bool   `json:"rust"` // the second writer is there
}

// python starts the child process at the first call.
var python = sync.OnceValues(func() (*original, error) {
	name := os.Getenv("SPILE_PYTHON")
	if name == "" {
		name = "python3"
		if exec.Command(name, "-c", "import msglc").Run() != nil {
			return nil, nil
		}
	}
	p := &original{cmd: exec.Command(name, "-X", "utf8", "testdata/driver.py")}
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("SPILE_PYTHON: %w", err)
	}
	running = p
	return p, p.call(p, request{"op": "about"})
})

var running *original // what python started, for TestMain to end

// needOriginal returns the original, or skips the test where there is none.
func needOriginal(t *testing.T) *original {
	t.Helper()
	p, err := python()
	if err != nil {
		t.Fatal(err)
	}
	if p == nil {
		t.Skip("no Python with the package msglc; SPILE_PYTHON can name one")
	}
	return p
}

func TestMain(m *testing.M) {
	code := m.Run()
	if running != nil {
		running.in.Close() // ends the loop of the driver
		if err := running.cmd.Wait(); err != nil {
			fmt.Fprintln(os.Stderr, "driver:", err)
			code = 1
		}
	}
	os.Exit(code)
}

func TestVersion(t *testing.T) {
	p := needOriginal(t)
	t.Logf("msglc %s, numpy %v, Rust writer %v", p.Msglc, p.Numpy, p.Rust)
}

type request map[string]any

// answer is what the driver says to a request, or to one path of a request.
type answer struct {
	OK    json.RawMessage `json:"ok"`
	Error string          `json:"error"`
}

// call sends one request and stores the result in v, unless that is nil.
func (p *original) call(v any, r request) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("driver: %w", err)
	}
	if line, err = p.out.ReadBytes('\n'); err != nil {
		return fmt.Errorf("driver, request %v: %w", r["op"], err)
	}
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		return err
	}
	return a.store(v)
}

func (a answer) store(v any) error {
	if a.Error != "" {
		return fmt.Errorf("original: %s", a.Error)
	}
	if v == nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(a.OK))
	d.UseNumber()
	return d.Decode(v)
}

// format is how an archive is written.
type format struct {
	codec              string // msgpack or cbor
	backend            string // python or rust
	threshold, trivial int64
	magic              []byte
	intPack            bool
}

func (f format) request(op, path string) request {
	r := request{"op": op, "path": path, "codec": f.codec, "threshold": f.threshold, "trivial": f.trivial, "int_pack": f.intPack}
	if f.magic != nil {
		r["magic"] = fmt.Sprintf("%x", f.magic)
	}
	return r
}

// dump has the original write a value in typed JSON to a file, and returns the bytes.
func (p *original) dump(path string, typedValue any, f format) ([]byte, error) {
	r := f.request("dump", path)
	r["value"], r["backend"] = typedValue, f.backend
	if err := p.call(nil, r); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// dumpJSON has the original write the value of a JSON text.
func (p *original) dumpJSON(path, text string, f format) ([]byte, error) {
	r := f.request("dump", path)
	r["json"], r["backend"] = text, f.backend
	if err := p.call(nil, r); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// read has the original read the full values at some paths. A path is nil for the whole, a string, or a list of typed
// JSON.
func (p *original) read(path string, f format, cached bool, paths ...any) ([]answer, error) {
	r := f.request("read", path)
	r["cached"], r["paths"] = cached, paths
	var answers []answer
	return answers, p.call(&answers, r)
}

// raw has the original copy out the archive at a path, or its payload.
func (p *original) raw(path string, f format, of string, payload bool) ([]byte, error) {
	r := f.request("raw", path)
	r["payload"] = payload
	if of != "" {
		r["of"] = of
	}
	var text string
	if err := p.call(&text, r); err != nil {
		return nil, err
	}
	return hex.DecodeString(text)
}

// part is a part of a combined archive; Name is nil in a list.
type part struct {
	Path string  `json:"path"`
	Name *string `json:"name"`
}

func (p *original) combine(path string, f format, add bool, parts ...part) ([]byte, error) {
	r := f.request("combine", path)
	r["parts"], r["append"] = parts, add
	if err := p.call(nil, r); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}
