package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/scratch"
)

// Spool copies r, such as standard input, to a temporary file and returns that as an object called name. The file is
// gone when the object is closed; where the system allows it, it has no name from the start, so that it is gone when
// the process is killed, too. After an error nothing is left.
//
// Spool returns at once when ctx ends, even when r blocks. The goroutine that reads from r then ends when that read
// does.
func Spool(ctx context.Context, r io.Reader, name string) (Object, error) {
	t, err := CreateTemporary("")
	if err != nil {
		return nil, fault.Locate(err, name, "", 0)
	}
	size, err := copyUntil(ctx, t, r)
	if err != nil {
		t.Close()
		if _, ok := err.(*fault.Error); ok { // of the source that r reads, with its place
			return nil, fault.Locate(err, name, "", 0)
		}
		return nil, systemFault(name, err)
	}
	return &readerAt{name: name, size: size, cost: localCost, r: t, closer: t}, nil
}

// Temporary is a file that is gone when it is closed. Where the system allows it, it has no name from the start, so
// that it is gone when the process is killed, too.
//
// Its methods are those of an [os.File].
type Temporary struct{ file *scratch.File }

func (t *Temporary) Read(p []byte) (int, error)                   { return t.file.Read(p) }
func (t *Temporary) ReadAt(p []byte, off int64) (int, error)      { return t.file.ReadAt(p, off) }
func (t *Temporary) Write(p []byte) (int, error)                  { return t.file.Write(p) }
func (t *Temporary) WriteAt(p []byte, off int64) (int, error)     { return t.file.WriteAt(p, off) }
func (t *Temporary) Seek(offset int64, whence int) (int64, error) { return t.file.Seek(offset, whence) }

// Close frees the file.
func (t *Temporary) Close() error { return t.file.Close() }

// CreateTemporary makes a temporary file in the folder dir, "" for [os.TempDir].
func CreateTemporary(dir string) (*Temporary, error) {
	f, err := scratch.Create(dir)
	if err != nil {
		e := systemFault("", err)
		e.Msg = "temporary file in " + dir
		if dir == "" {
			e.Msg += os.TempDir() + ", the folder that TMPDIR names"
		}
		return nil, e
	}
	return &Temporary{f}, nil
}

// copyUntil copies r to w until r or ctx ends. The buffer belongs to the reading goroutine from ask to got.
func copyUntil(ctx context.Context, w io.Writer, r io.Reader) (int64, error) {
	type result struct {
		n   int
		err error
	}
	ask := make(chan []byte)
	got := make(chan result, 1) // room for the answer that nobody waits for any more
	defer close(ask)
	go func() {
		for p := range ask {
			n, err := r.Read(p)
			got <- result{n, err}
		}
	}()
	buf := make([]byte, defaultBuffer)
	for total := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return total, err
		}
		ask <- buf // the goroutine is waiting
		select {
		case <-ctx.Done():
			return total, ctx.Err()
		case res := <-got:
			if res.n < 0 || res.n > len(buf) {
				return total, errors.New("reader returned an invalid count")
			}
			if _, err := w.Write(buf[:res.n]); err != nil {
				return total, fmt.Errorf("temporary file: %w", err)
			}
			total += int64(res.n)
			if res.err == io.EOF {
				return total, nil
			}
			if res.err != nil {
				return total, res.err
			}
		}
	}
}
