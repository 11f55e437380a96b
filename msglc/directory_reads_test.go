package msglc

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/spilehq/spile/source"
)

// marking notes which reads are marked as those of a directory.
type marking struct {
	source.Object
	mu    sync.Mutex
	reads []markedRead
}

type markedRead struct {
	off       int64
	directory bool
}

func (m *marking) ReadAt(ctx context.Context, p []byte, off int64) error {
	m.mu.Lock()
	m.reads = append(m.reads, markedRead{off, source.IsDirectory(ctx)})
	m.mu.Unlock()
	return m.Object.ReadAt(ctx, p, off)
}

// Reads of the prefix and of the table of contents are marked for caches, reads of the payload are not.
func TestDirectoryReadsAreMarked(t *testing.T) {
	list := make([]any, 20_000)
	for i := range list {
		list[i] = strings.Repeat("x", 40)
	}
	obj := &marking{Object: source.Memory("long.msg", dumps(t, list, &WriteOptions{Threshold: 1, Trivial: 1}))}
	r, err := Open(t.Context(), obj, nil)
	if err != nil {
		t.Fatal(err)
	}
	n, err := r.Root().Index(t.Context(), 15_000)
	if err == nil {
		_, err = n.Value(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	marked, plain := 0, 0
	for _, read := range obj.reads {
		if directory := read.off == 0 || read.off >= r.h.tocStart; read.directory != directory {
			t.Errorf("the read at %d is marked: %v", read.off, read.directory)
		} else if directory {
			marked++
		} else {
			plain++
		}
	}
	if marked < 2 || plain == 0 {
		t.Errorf("%d reads of the directory, %d of the payload", marked, plain)
	}
}
