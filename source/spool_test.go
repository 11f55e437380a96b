package source_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// tempFolder makes a folder the place of temporary files, and returns a count of what is in it.
func tempFolder(t *testing.T) func() int {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir)
	return func() int { return len(must(os.ReadDir(dir))) }
}

func TestSpool(t *testing.T) {
	files := tempFolder(t)
	want := content(600_000) // more than two buffers
	for name, r := range map[string]io.Reader{
		"whole":         bytes.NewReader(want),
		"byte by byte":  iotest.OneByteReader(bytes.NewReader(want[:1000])),
		"data with EOF": iotest.DataErrReader(bytes.NewReader(want)),
		"empty":         bytes.NewReader(nil),
	} {
		t.Run(name, func(t *testing.T) {
			obj, err := source.Spool(t.Context(), r, "-")
			if err != nil {
				t.Fatal(err)
			}
			if runtime.GOOS != "windows" && files() != 0 {
				t.Error("the file has a name while it is open")
			}
			got := make([]byte, obj.Size())
			if err := obj.ReadAt(t.Context(), got, 0); err != nil || !bytes.HasPrefix(want, got) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if obj.Name() != "-" || obj.Version() != "" {
				t.Errorf("name %q, version %q", obj.Name(), obj.Version())
			}
			if err := errors.Join(obj.Close(), obj.Close()); err != nil || files() != 0 {
				t.Errorf("%d files after Close, %v", files(), err)
			}
		})
	}
}

// readerFunc is a hostile io.Reader.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestSpoolFails(t *testing.T) {
	files := tempFolder(t)
	broken := errors.New("broken")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	after := func(n int) io.Reader { return io.MultiReader(bytes.NewReader(content(n)), iotest.ErrReader(broken)) }
	count := func(n int) io.Reader { return readerFunc(func([]byte) (int, error) { return n, nil }) }
	for _, tt := range []struct {
		name string
		ctx  context.Context
		r    io.Reader
		want error
		text string
	}{
		{"at once", t.Context(), iotest.ErrReader(broken), broken, "source: stdin: broken"},
		{"of another object", t.Context(), iotest.ErrReader(fault.New(fault.Limit, "source", "no more").In("url")), fault.Limit, "source: url: no more"},
		{"later", t.Context(), after(600_000), broken, ""},
		{"data with the error", t.Context(), iotest.DataErrReader(after(10)), broken, ""},
		{"cancelled", ended, iotest.ErrReader(broken), context.Canceled, "source: stdin: context canceled"},
		{"count too long", t.Context(), count(256<<10 + 1), nil, "invalid count"},
		{"count negative", t.Context(), count(-1), nil, "invalid count"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			defer goleak.VerifyNone(t)
			obj, err := source.Spool(tt.ctx, tt.r, "stdin")
			if obj != nil || files() != 0 {
				t.Errorf("object %v, %d files", obj, files())
			}
			if tt.want == nil {
				tt.want = err
			}
			wantFault(t, err, tt.want, tt.text)
		})
	}
	t.Run("no place", func(t *testing.T) {
		t.Setenv("TMPDIR", "/no/such/folder")
		t.Setenv("TMP", "/no/such/folder")
		_, err := source.Spool(t.Context(), bytes.NewReader(nil), "stdin")
		wantFault(t, err, os.ErrNotExist, "stdin: temporary file in ", "such")
	})
}

// Spool comes back although the reader does not; the goroutine ends with the read.
func TestSpoolCancelledWhileBlocked(t *testing.T) {
	defer goleak.VerifyNone(t)
	files := tempFolder(t)
	ctx, cancel := context.WithCancel(t.Context())
	end := make(chan struct{})
	defer close(end)
	blocks := readerFunc(func([]byte) (int, error) {
		cancel()
		<-end
		return 0, io.EOF
	})
	_, err := source.Spool(ctx, io.MultiReader(bytes.NewReader(content(10)), blocks), "stdin")
	wantFault(t, err, context.Canceled, "stdin")
	if files() != 0 {
		t.Errorf("%d files left", files())
	}
}
func TestTemporary(t *testing.T) {
	f, err := source.CreateTemporary(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("a file")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("F"), 2); err != nil {
		t.Fatal(err)
	}
	if at, err := f.Seek(1, io.SeekStart); at != 1 || err != nil {
		t.Fatal(at, err)
	}
	if p, err := io.ReadAll(f); string(p) != " File" || err != nil {
		t.Fatalf("%q, %v", p, err)
	}
	var p [4]byte
	if _, err := f.ReadAt(p[:], 2); string(p[:]) != "File" || err != nil {
		t.Fatalf("%q, %v", p, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(p[:]); err == nil {
		t.Error("a write after Close")
	}
}
