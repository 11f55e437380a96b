package msglc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

func TestWriterFaults(t *testing.T) {
	double := value.AppendMapHeader(nil, value.Msgpack, 3)
	for _, key := range []string{"a", "b", "a"} {
		double = value.AppendString(value.AppendString(double, value.Msgpack, key), value.Msgpack, strings.Repeat("x", 40))
	}
	// The same key in two encodings.
	widths := append([]byte{0x82, 0x07}, 0xd9, 40)
	widths = append(append(widths, bytes.Repeat([]byte("x"), 40)...), 0xcc, 0x07, 0x00)
	small := &WriteOptions{Threshold: 16, Trivial: 8}
	for _, c := range []struct {
		name    string
		payload []byte
		o       *WriteOptions
		class   error
		offset  int64
	}{
		{"nothing", nil, nil, fault.Invalid, fault.NoOffset},
		{"no value", []byte{0x01, 0xc1}, nil, fault.Corrupt, 1},
		{"two values", []byte{0x01, 0x02}, nil, fault.Corrupt, 1},
		{"an item too many", []byte{0x92, 1, 2, 3}, nil, fault.Corrupt, 3},
		{"an item too few", []byte{0x93, 1, 2}, nil, fault.Corrupt, 3},
		{"a head cut", []byte{0xcd, 1}, nil, fault.Corrupt, 2},
		{"a text cut", []byte{0xa5, 'x'}, nil, fault.Corrupt, 2},
		{"a value missing", []byte{0x81, 0xa1, 'x'}, nil, fault.Corrupt, 3},
		{"a byte that is no msgpack", []byte{0x92, 1, 0xc1}, nil, fault.Corrupt, 2},
		{"a byte that is no CBOR", []byte{0x82, 1, 0x1c}, &WriteOptions{Codec: value.CBOR}, fault.Corrupt, 2},
		{"a break", []byte{0x82, 1, 0xff}, &WriteOptions{Codec: value.CBOR}, fault.Corrupt, 2},
		{"a map without a value", []byte{0xbf, 1, 0xff}, &WriteOptions{Codec: value.CBOR}, fault.Corrupt, 2},
		{"too deep", []byte{0x91, 0x91, 0x91, 1}, &WriteOptions{Limits: value.Limits{Depth: 2}}, fault.Limit, 2},
		{"a key twice", double, small, fault.Conflict, 89},
		{"a key twice, widths", widths, small, fault.Conflict, 44},
	} {
		for _, size := range []int{1, 1000} {
			var b buffer
			w, err := NewWriter(t.Context(), &b, c.o)
			if err != nil {
				t.Fatal(err)
			}
			for p := c.payload; len(p) > 0; p = p[min(size, len(p)):] {
				w.Write(p[:min(size, len(p))])
			}
			err = w.Close()
			e, _ := errors.AsType[*fault.Error](err)
			if !errors.Is(err, c.class) || e.Offset != c.offset {
				t.Errorf("%s: %v, expected %v at %#x", c.name, err, c.class, c.offset)
			}
			if again := w.Close(); again != err {
				t.Errorf("%s: closed again: %v", c.name, again)
			}
			if _, err := Open(t.Context(), source.Memory("x", b), nil); err == nil {
				t.Errorf("%s: what was written can be read", c.name)
			}
		}
	}
	// A key twice in a map without a table is not looked for.
	if _, err := archive(double, nil); err != nil {
		t.Error(err)
	}
}

func TestWriterAfterClose(t *testing.T) {
	var b buffer
	w, err := NewWriter(t.Context(), &b, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Write([]byte{1})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	n := len(b)
	if _, err := w.Write([]byte{1}); !errors.Is(err, fault.Invalid) {
		t.Errorf("write: %v", err)
	}
	if err := w.WriteValue(1); !errors.Is(err, fault.Invalid) {
		t.Errorf("write value: %v", err)
	}
	if err := w.Close(); !errors.Is(err, fault.Invalid) || len(b) != n {
		t.Errorf("close: %v", err)
	}
}

func TestOptionsRefused(t *testing.T) {
	for _, o := range []WriteOptions{
		{Codec: 3}, {Threshold: -1}, {Trivial: -1}, {Magic: []byte{}}, {Magic: make([]byte, 31)}, {NumericArrays: 3},
	} {
		obj := source.Memory("x", []byte{1})
		for name, f := range map[string]func() error{
			"writer":  func() error { _, err := NewWriter(t.Context(), new(buffer), &o); return err },
			"dumps":   func() error { _, err := Dumps(1, &o); return err },
			"dump":    func() error { return Dump(t.Context(), filepath.Join(t.TempDir(), "x"), 1, &o) },
			"index":   func() error { return Index(t.Context(), new(buffer), obj, &o) },
			"sidecar": func() error { return WriteSidecar(t.Context(), new(buffer), obj, &o) },
			"combine": func() error { return Combine(t.Context(), new(buffer), []Part{{}}, &CombineOptions{WriteOptions: o}) },
			"repair":  func() error { return Repair(t.Context(), new(buffer), obj, &o) },
			"salvage": func() error { _, err := Salvage(t.Context(), new(buffer), obj, &o); return err },
		} {
			if err := f(); !errors.Is(err, fault.Invalid) {
				t.Errorf("%s %+v: %v", name, o, err)
			}
		}
	}
}

// failing is a target that takes so many bytes.
type failing struct{ left int }

var errFull = errors.New("no space left")

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func (f *failing) WriteAt(p []byte, _ int64) (int, error) { return f.Write(p) }

func TestTargetFails(t *testing.T) {
	payload := benchPayloads["mixed"](value.Msgpack, 600_000)
	whole := archiveOf(t, payload, nil)
	obj := source.Memory("in.msgpack", payload)
	for left := 0; left < len(whole)+2*fieldSize; left += 1 + left/2 {
		for name, f := range map[string]func(dst Target) error{
			"index": func(dst Target) error { return Index(t.Context(), dst, obj, nil) },
			"combine": func(dst Target) error {
				return Combine(t.Context(), dst, []Part{{Object: source.Memory("x", whole)}}, nil)
			},
			"repair": func(dst Target) error { return Repair(t.Context(), dst, source.Memory("x", whole), nil) },
			"salvage": func(dst Target) error {
				_, err := Salvage(t.Context(), dst, source.Memory("x", whole), nil)
				return err
			},
		} {
			if err := f(&failing{left}); !errors.Is(err, errFull) {
				t.Errorf("%s with room for %d: %v", name, left, err)
			}
		}
	}
}

func TestIndexKeepsTheBytes(t *testing.T) {
	// Encodings that a plain encoder does not make: long heads, a float32.
	payload := []byte{0xdd, 0, 0, 0, 3, 0xcf, 0, 0, 0, 0, 0, 0, 0, 1, 0xca, 0x3f, 0x80, 0, 0, 0xdb, 0, 0, 0, 1, 'x'}
	var calls []int64
	o := &WriteOptions{Threshold: 4, Trivial: 2, Progress: func(done int64) { calls = append(calls, done) }}
	var b buffer
	if err := Index(t.Context(), &b, source.Memory("in.msgpack", payload), o); err != nil {
		t.Fatal(err)
	}
	r := checked(t, b, nil)
	if got, err := io.ReadAll(r.ProtocolRawData(t.Context())); err != nil || !bytes.Equal(got, payload) {
		t.Errorf("payload % x, %v", got, err)
	}
	if len(calls) == 0 || calls[len(calls)-1] != int64(len(payload)) {
		t.Errorf("progress %v", calls)
	}
	bad := source.Memory("in.msgpack", payload[:20])
	err := Index(t.Context(), new(buffer), bad, nil)
	if want := "msglc: in.msgpack: payload ends within a value (offset 0x14)"; err == nil || err.Error() != want {
		t.Errorf("%v, expected %s", err, want)
	}
}

func TestIndexStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	payload := benchPayloads["records"](value.Msgpack, 3<<20)
	o := &WriteOptions{Progress: func(done int64) {
		if done > 1<<20 {
			cancel()
		}
	}}
	obj := source.Memory("in.msgpack", payload)
	if err := Index(ctx, nowhere{}, obj, o); !errors.Is(err, context.Canceled) {
		t.Errorf("index: %v", err)
	}
	if err := WriteSidecar(ctx, new(buffer), obj, o); !errors.Is(err, context.Canceled) {
		t.Errorf("sidecar: %v", err)
	}
	path := filepath.Join(t.TempDir(), "x.msg")
	if err := Dump(ctx, path, payload, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("dump: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("dump left a file: %v", err)
	}
}

// TestSpill makes a table that is longer than the bound, and so goes to a temporary file, without leaving that behind.
func TestSpill(t *testing.T) {
	dir := t.TempDir()
	item := value.AppendString(nil, value.Msgpack, strings.Repeat("x", 25)) // not trivial
	n := tapeBound + tapeBound/2
	s, err := (&WriteOptions{TempDir: dir}).settings()
	if err != nil {
		t.Fatal(err)
	}
	b := newTOCBuilder(&s)
	defer b.close()
	if err := b.write(value.AppendArrayHeader(nil, value.Msgpack, n)); err != nil {
		t.Fatal(err)
	}
	// Sizes that alternate, so that no run of equal leaves takes less.
	chunk := bytes.Repeat(append(bytes.Clone(item), 0x07), 1<<12)
	for left := n; left > 0; left -= 2 << 12 {
		if err := b.write(chunk[:min(len(chunk), (len(item)+1)*(left/2))]); err != nil {
			t.Fatal(err)
		}
	}
	if b.children.file == nil {
		t.Error("nothing was spilled")
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) > 1 {
		t.Errorf("in the folder for temporary files: %v, %v", all, err)
	}
	var toc counted
	toc.Target = nowhere{}
	if size, err := b.writeTOC(&toc); err != nil || size != toc.n || size < 10*int64(n) {
		t.Errorf("table of %d bytes, %v", size, err)
	}
	b.close()
	if all, err := os.ReadDir(dir); err != nil || len(all) > 0 {
		t.Errorf("left in the folder for temporary files: %v, %v", all, err)
	}
	s.tempDir = filepath.Join(dir, "missing")
	b = newTOCBuilder(&s)
	b.children.bound = 1
	if err := b.write([]byte{0x93, 1, 0x91, 2, 0x91}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder for temporary files: %v", err)
	}
}

func TestSidecar(t *testing.T) {
	ctx := t.Context()
	payload := benchPayloads["mixed"](value.CBOR, 400_000)
	o := &WriteOptions{Codec: value.CBOR, Threshold: 1000}
	file := archiveOf(t, payload, o)
	h, err := parseHeader(file[MagicSize:])
	if err != nil {
		t.Fatal(err)
	}
	var side buffer
	if err := WriteSidecar(ctx, &side, source.Memory("in.cbor", payload), o); err != nil {
		t.Fatal(err)
	}
	if toc := side[sidecarHead : len(side)-sidecarTrailer]; !bytes.Equal(toc, file[PrefixSize+h.tocStart:]) {
		t.Error("the table differs from that of the archive")
	}
	if SidecarName("in.cbor") != "in.cbor.toc" {
		t.Error(SidecarName("in.cbor"))
	}
	open := func(payload, side []byte) error {
		r, err := OpenSidecar(ctx, source.Memory("in.cbor", payload), source.Memory("in.cbor.toc", side), nil)
		if err != nil {
			return err
		}
		return r.Verify(ctx, &VerifyOptions{Deep: true}, func(f Finding) {
			if !f.Note {
				t.Error(f.Err)
			}
		})
	}
	if err := open(payload, side); err != nil {
		t.Fatal(err)
	}
	change := func(p []byte, i int) []byte {
		p = bytes.Clone(p)
		if i < 0 {
			i += len(p)
		}
		p[i] ^= 1
		return p
	}
	for name, c := range map[string]struct {
		payload, side []byte
		class         error
	}{
		"payload longer":       {append(bytes.Clone(payload), 0), side, fault.Changed},
		"payload, first byte":  {change(payload, 0), side, fault.Changed},
		"payload, last byte":   {change(payload, -1), side, fault.Changed},
		"payload, head":        {change(payload, sidecarPin-1), side, fault.Changed},
		"payload, tail":        {change(payload, -sidecarPin), side, fault.Changed},
		"sidecar cut":          {payload, side[:len(side)-1], fault.Corrupt},
		"sidecar short":        {payload, side[:20], fault.Corrupt},
		"sidecar empty":        {payload, nil, fault.Corrupt},
		"sidecar longer":       {payload, append(bytes.Clone(side), 0), fault.Corrupt},
		"sidecar, magic":       {payload, change(side, 0), fault.Corrupt},
		"sidecar, codec":       {payload, change(side, 16), fault.Corrupt},
		"sidecar, size":        {payload, change(side, 24), fault.Corrupt},
		"sidecar, table size":  {payload, change(side, -24), fault.Corrupt},
		"sidecar, table hash":  {payload, change(side, -16), fault.Corrupt},
		"sidecar, hash":        {payload, change(side, -1), fault.Corrupt},
		"an archive as one":    {payload, file, fault.Corrupt},
		"sidecar of a small":   {[]byte{1}, side, fault.Changed},
		"zeros as the payload": {make([]byte, len(payload)), side, fault.Changed},
	} {
		if err := open(c.payload, c.side); !errors.Is(err, c.class) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s, err := readSidecar(ctx, source.Memory("in.cbor", payload), source.Memory("in.cbor.toc", side))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.checkTOC(ctx, source.Memory("in.cbor.toc", side)); err != nil {
		t.Error(err)
	}
	if err := s.checkTOC(ctx, source.Memory("in.cbor.toc", change(side, 2*sidecarHead))); !errors.Is(err, fault.Corrupt) {
		t.Errorf("changed table: %v", err)
	}
	if err := WriteSidecar(ctx, new(buffer), source.Memory("in.cbor", payload[:100]), o); !errors.Is(err, fault.Corrupt) {
		t.Errorf("payload cut: %v", err)
	}
}

func TestDump(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.msg")
	v := map[string]any{"a": []any{1, 2.5, "x"}}
	if err := Dump(t.Context(), path, v, nil); err != nil {
		t.Fatal(err)
	}
	p, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Dumps(v, nil)
	if err != nil || !bytes.Equal(s, p) {
		t.Errorf("Dump and Dumps differ, %v", err)
	}
	if v, err := checked(t, p, nil).Root().Value(t.Context()); err != nil || text(v) != `{"a":[1,2.5,"x"]}` {
		t.Errorf("%v, %v", v, err)
	}
	// A stream that gives fewer items than it says.
	short := value.Seq{Len: 3, Items: func(yield func(any) bool) { _ = yield(1) && yield(2) }}
	before := p
	if err := Dump(t.Context(), path, short, nil); err == nil {
		t.Error("a wrong count was written")
	}
	if p, err := os.ReadFile(path); err != nil || !bytes.Equal(p, before) {
		t.Errorf("the old file was changed, %v", err)
	}
}
