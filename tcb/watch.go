package tcb

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spilehq/spile/fault"
)

// WatchOptions are the options of a watch. Nil and the zero value mean the defaults.
type WatchOptions struct {
	// Interval is how often the folder is looked at; default: DefaultWatchInterval. A change is seen when it has not gone
	// on for one interval. On file systems whose times are coarser than the interval, a change of a file in place that
	// leaves its length can be missed.
	Interval time.Duration
	// Pattern says which files of the folder count, as of [path/filepath.Match]; default: *.tcb.
	Pattern string
	// Report, when set, is called in the goroutine of the watch behind every reload: with nil when there is a new
	// snapshot, with the error when the old one is kept. It must not close the watch.
	Report func(err error)
}

// DefaultWatchInterval is WatchOptions.Interval by default: what a change of game data may take to show, at a cost of a
// few stats a second.
const DefaultWatchInterval = time.Second

// maxWatchBackoff is how many intervals pass at most between two tries to load files that have not changed since the
// last could not.
const maxWatchBackoff = 64

// Watch keeps the content of a folder in memory, and loads it anew when its files have changed. It is safe for concurrent
// use.
type Watch[S any] struct {
	dir      string
	load     func(ctx context.Context, dir string) (*S, error)
	interval time.Duration
	pattern  string
	report   func(error)

	snapshot atomic.Pointer[S]
	err      atomic.Pointer[error]
	stop     context.CancelFunc
	done     chan struct{}
}

// NewWatch loads a folder and watches it until the context ends, or the watch is closed. What load returns is a
// snapshot: all that the program wants of the folder, its tables and the indexes of them. It is replaced as a whole, so
// that a reader that took one sees tables that belong together, and it must not be changed.
//
// Files are loaded when two looks at the folder have found them the same: their names, lengths, times and, for one that
// was replaced by a rename, what file it is. What was loaded while they changed is dropped. When load fails, the old
// snapshot stays; it is tried again when a file changes, and less and less often in between. When load fails the first
// time, there is no watch.
func NewWatch[S any](ctx context.Context, dir string, load func(ctx context.Context, dir string) (*S, error), o *WatchOptions) (*Watch[S], error) {
	w := &Watch[S]{dir: dir, load: load, interval: DefaultWatchInterval, pattern: "*.tcb", done: make(chan struct{})}
	if o != nil {
		if o.Interval > 0 {
			w.interval = o.Interval
		}
		if o.Pattern != "" {
			w.pattern = o.Pattern
		}
		w.report = o.Report
	}
	if _, err := filepath.Match(w.pattern, ""); err != nil {
		return nil, fault.New(fault.Invalid, "tcb", "the pattern %q", w.pattern).Because(err)
	}
	ctx, w.stop = context.WithCancel(ctx)
	loaded, err := w.first(ctx)
	if err != nil {
		w.stop()
		return nil, err
	}
	go w.run(ctx, loaded)
	return w, nil
}

// Snapshot returns what was loaded last. It is one load of a pointer.
func (w *Watch[S]) Snapshot() *S { return w.snapshot.Load() }

// Err returns why the files as they are now could not be loaded; nil when the snapshot is what they hold, as far as the
// watch has looked.
func (w *Watch[S]) Err() error {
	if err := w.err.Load(); err != nil {
		return *err
	}
	return nil
}

// Close ends the watch, and returns when its goroutine is gone. The snapshot stays.
func (w *Watch[S]) Close() {
	w.stop()
	<-w.done
}

// file is what a look at a folder finds of a file.
type file struct {
	name string
	info os.FileInfo
}

// look lists the files that count, by name.
func (w *Watch[S]) look() ([]file, error) {
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		return nil, fault.New(nil, "tcb", "").Because(err).In(w.dir)
	}
	files := []file{}
	for _, e := range entries {
		if ok, _ := filepath.Match(w.pattern, e.Name()); !ok {
			continue
		}
		// Not e.Info, since a link counts as what it leads to.
		info, err := os.Stat(filepath.Join(w.dir, e.Name()))
		if err != nil {
			continue // it is gone again
		}
		os.SameFile(info, info) // Windows finds out only now what file it is
		files = append(files, file{e.Name(), info})
	}
	return files, nil
}

func sameFiles(a, b []file) bool {
	return slices.EqualFunc(a, b, func(a, b file) bool {
		return a.name == b.name && a.info.Size() == b.info.Size() && a.info.ModTime().Equal(b.info.ModTime()) && os.SameFile(a.info, b.info)
	})
}

// first loads the folder the first time, and returns what it has loaded.
func (w *Watch[S]) first(ctx context.Context) ([]file, error) {
	for {
		before, err := w.look()
		if err != nil {
			return nil, err
		}
		s, loadErr := w.call(ctx)
		after, err := w.look()
		switch {
		case err != nil:
			return nil, err
		case !sameFiles(before, after):
			// What was loaded, or not, may be of files that somebody was writing.
		case loadErr != nil:
			return nil, loadErr
		default:
			w.snapshot.Store(s)
			return after, nil
		}
		select {
		case <-ctx.Done():
			return nil, fault.New(nil, "tcb", "").Because(ctx.Err()).In(w.dir)
		case <-time.After(w.interval):
		}
	}
}

func (w *Watch[S]) call(ctx context.Context) (*S, error) {
	s, err := w.load(ctx, w.dir)
	if err == nil && s == nil {
		err = fault.New(fault.Invalid, "tcb", "neither a snapshot nor an error was loaded").In(w.dir)
	}
	return s, err
}

// run looks at the folder again and again.
func (w *Watch[S]) run(ctx context.Context, loaded []file) {
	defer close(w.done)
	defer w.stop()
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	var failed []file // could not be loaded, nil: none
	last := loaded
	wait, backoff := 0, 1
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, err := w.look()
		if err != nil {
			last = nil
			w.err.Store(&err)
			continue
		}
		stable := last != nil && sameFiles(last, now)
		last = now
		switch {
		case !stable:
			continue
		case sameFiles(now, loaded):
			w.err.Store(nil)
			failed = nil
			continue
		case failed != nil && sameFiles(now, failed):
			if wait--; wait > 0 {
				continue
			}
			backoff = min(2*backoff, maxWatchBackoff)
		default:
			backoff = 1
		}
		s, err := w.call(ctx)
		if ctx.Err() != nil {
			return
		}
		after, lookErr := w.look()
		if lookErr != nil || !sameFiles(now, after) {
			last = after
			continue
		}
		if err != nil {
			failed, wait = now, backoff
			w.err.Store(&err)
		} else {
			failed, loaded = nil, now
			w.snapshot.Store(s)
			w.err.Store(nil)
		}
		if w.report != nil {
			w.report(err)
		}
	}
}
