package tcb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// wave is a table whose rows all have the number of the version, so that rows of two versions are seen.
type wave struct {
	Version int32 `tcb:"1"`
	Row     int32 `tcb:"2"`
}

// two are tables that belong together.
type two struct {
	A, B  []wave
	byRow *Index[int32, wave]
}

func loadWave(ctx context.Context, path string) ([]wave, error) {
	obj, err := source.OpenFile(path)
	if err != nil {
		return nil, err
	}
	t, err := Open(ctx, obj, nil)
	if err != nil {
		obj.Close()
		return nil, err
	}
	defer t.Close()
	return Load[wave](ctx, t)
}

func loadTwo(ctx context.Context, dir string) (*two, error) {
	a, err := loadWave(ctx, filepath.Join(dir, "a.tcb"))
	if err != nil {
		return nil, err
	}
	b, err := loadWave(ctx, filepath.Join(dir, "b.tcb"))
	if err != nil {
		return nil, err
	}
	return &two{a, b, Unique(a, func(w *wave) int32 { return w.Row })}, nil
}

func waveFile(t testing.TB, version int) []byte {
	t.Helper()
	rows := make([]wave, 50)
	for i := range rows {
		rows[i] = wave{int32(version), int32(i)}
	}
	file, err := Marshal(nil, rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// put replaces a file by a rename, or writes it in place.
func put(t testing.TB, path string, file []byte, rename bool) {
	t.Helper()
	to := path
	if rename {
		to += ".new"
	}
	err := os.WriteFile(to, file, 0o666)
	if err == nil && rename {
		err = os.Rename(to, path)
	}
	if err != nil {
		t.Error(err)
	}
}

// touch gives a file a time of its own, since the clock of a test stands still and that of the file system does not.
func touch(t testing.TB, path string, n int) {
	t.Helper()
	at := time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Error(err)
	}
}

// folder writes both tables.
func folder(t testing.TB, version int) (dir, a, b string) {
	t.Helper()
	dir = t.TempDir()
	a, b = filepath.Join(dir, "a.tcb"), filepath.Join(dir, "b.tcb")
	for _, path := range []string{a, b} {
		put(t, path, waveFile(t, version), false)
		touch(t, path, version)
	}
	return dir, a, b
}

func TestWatch(t *testing.T) {
	dir, a, b := folder(t, 1)
	synctest.Test(t, func(t *testing.T) {
		var reports, loads atomic.Int32
		var failed atomic.Bool // the last report
		w, err := NewWatch(t.Context(), dir, func(ctx context.Context, dir string) (*two, error) {
			loads.Add(1)
			return loadTwo(ctx, dir)
		}, &WatchOptions{Report: func(err error) { reports.Add(1); failed.Store(err != nil) }})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		version := func() int32 { return w.Snapshot().A[0].Version }
		// pass lets the watch look some times.
		pass := func(n int) {
			time.Sleep(time.Duration(n) * DefaultWatchInterval)
			synctest.Wait()
		}
		check := func(what string, wantVersion, wantReports int32, wantFailed bool) {
			t.Helper()
			if version() != wantVersion || reports.Load() != wantReports || (w.Err() != nil) != wantFailed || failed.Load() != wantFailed {
				t.Errorf("%s: version %d, %d reports, %v, %t", what, version(), reports.Load(), w.Err(), failed.Load())
			}
		}
		pass(10)
		check("nothing", 1, 0, false)
		if loads.Load() != 1 {
			t.Errorf("%d loads", loads.Load())
		}

		first := w.Snapshot()
		put(t, a, waveFile(t, 2), false)
		touch(t, a, 2)
		pass(1)
		check("a change that was seen once", 1, 0, false)
		pass(1)
		check("a change that was seen twice", 2, 1, false)
		if first.A[0].Version != 1 || w.Snapshot() == first {
			t.Error("the old snapshot was changed")
		}

		// The same length and time: the file is another.
		put(t, a, waveFile(t, 3), true)
		touch(t, a, 2)
		pass(2)
		check("a rename", 3, 2, false)

		// A file that is written piece by piece is not loaded before it is done.
		file := waveFile(t, 4)
		for n := range 5 {
			put(t, b, file[:len(file)-5+n], false)
			touch(t, b, 10+n)
			pass(1)
		}
		check("a file that grows", 3, 2, false)
		put(t, b, file, false)
		pass(2)
		check("a file that has grown", 3, 3, false)
		if v := w.Snapshot().B[0].Version; v != 4 {
			t.Errorf("b has version %d", v)
		}

		put(t, a, file[:len(file)-1], true)
		pass(2)
		check("a file that is damaged", 3, 4, true)
		if Check(w.Err()) == "" {
			t.Error(w.Err())
		}
		before := loads.Load()
		pass(1000)
		if n := loads.Load() - before; n < 10 || n > 30 {
			t.Errorf("%d tries to load it anew in 1000 intervals", n)
		}
		check("a file that stays damaged", 3, 4+loads.Load()-before, true)
		reports.Store(0)
		put(t, a, waveFile(t, 5), true)
		pass(2)
		check("a file that is whole again", 5, 1, false)

		if err := os.Remove(b); err != nil {
			t.Fatal(err)
		}
		pass(2)
		check("a file that is gone", 5, 2, true)
		if !errors.Is(w.Err(), fs.ErrNotExist) && !errors.Is(w.Err(), fault.NotFound) {
			t.Error(w.Err())
		}
		put(t, b, waveFile(t, 6), false)
		pass(2)
		check("a file that is back", 5, 3, false)

		// A file that does not count.
		put(t, filepath.Join(dir, "README"), nil, false)
		pass(3)
		check("another file", 5, 3, false)

		if err := os.Rename(dir, dir+".gone"); err != nil {
			t.Fatal(err)
		}
		pass(3)
		if w.Err() == nil || version() != 5 || reports.Load() != 3 {
			t.Error("a folder that is gone: ", w.Err())
		}
		if err := os.Rename(dir+".gone", dir); err != nil {
			t.Fatal(err)
		}
		pass(2)
		check("a folder that is back", 5, 3, false)

		w.Close()
		w.Close()
		put(t, a, waveFile(t, 7), true)
		pass(5)
		check("a watch that has ended", 5, 3, false)
	})
}

// A load during which files change is dropped.
func TestWatchChangeDuringLoad(t *testing.T) {
	dir, a, b := folder(t, 1)
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		w, err := NewWatch(t.Context(), dir, func(ctx context.Context, dir string) (*two, error) {
			n := n.Add(1)
			s, err := loadTwo(ctx, dir)
			switch n {
			case 1, 3: // behind the first load of the watch, and behind that of the first change
				put(t, b, waveFile(t, int(n)+1), true)
			case 5:
				put(t, a, waveFile(t, 9), true)
				return nil, errors.New("dropped too")
			}
			return s, err
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if s := w.Snapshot(); n.Load() != 2 || s.B[0].Version != 2 {
			t.Errorf("load %d, version %d", n.Load(), s.B[0].Version)
		}
		put(t, a, waveFile(t, 3), true)
		time.Sleep(10 * DefaultWatchInterval)
		synctest.Wait()
		if s := w.Snapshot(); n.Load() != 4 || s.A[0].Version != 3 || s.B[0].Version != 4 {
			t.Errorf("load %d, versions %d and %d", n.Load(), s.A[0].Version, s.B[0].Version)
		}
		put(t, a, waveFile(t, 5), true)
		time.Sleep(10 * DefaultWatchInterval)
		synctest.Wait()
		if s := w.Snapshot(); n.Load() != 6 || s.A[0].Version != 9 || w.Err() != nil {
			t.Errorf("load %d, version %d, %v", n.Load(), s.A[0].Version, w.Err())
		}
	})
}

func TestWatchRefused(t *testing.T) {
	defer goleak.VerifyNone(t)
	dir, _, _ := folder(t, 1)
	ctx := context.Background()
	wrong := errors.New("wrong")
	for _, c := range []struct {
		dir  string
		load func(context.Context, string) (*two, error)
		o    *WatchOptions
		want error
	}{
		{dir + "/none", loadTwo, nil, fs.ErrNotExist},
		{dir, loadTwo, &WatchOptions{Pattern: "["}, fault.Invalid},
		{dir, func(context.Context, string) (*two, error) { return nil, wrong }, nil, wrong},
		{dir, func(context.Context, string) (*two, error) { return nil, nil }, nil, fault.Invalid},
	} {
		if w, err := NewWatch(ctx, c.dir, c.load, c.o); w != nil || !errors.Is(err, c.want) {
			t.Errorf("%v, want %v", err, c.want)
		}
	}
	// The context ends while files change.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n := 0
	w, err := NewWatch(ctx, dir, func(context.Context, string) (*two, error) {
		put(t, filepath.Join(dir, "a.tcb"), make([]byte, n), true)
		if n++; n == 3 {
			cancel()
		}
		return &two{}, nil
	}, &WatchOptions{Interval: time.Millisecond})
	if w != nil || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// The end of the context ends the watch.
func TestWatchContext(t *testing.T) {
	defer goleak.VerifyNone(t)
	dir, _, _ := folder(t, 1)
	ctx, cancel := context.WithCancel(context.Background())
	w, err := NewWatch(ctx, dir, loadTwo, &WatchOptions{Interval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-w.done
	if w.Snapshot().A[0].Version != 1 {
		t.Error("the snapshot is gone")
	}
	w.Close()
}

// Readers always see whole snapshots, while they are replaced under them.
func TestWatchReaders(t *testing.T) {
	defer goleak.VerifyNone(t)
	dir, a, b := folder(t, 1)
	w, err := NewWatch(context.Background(), dir, loadTwo, &WatchOptions{Interval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var last atomic.Int32
	stop := make(chan struct{})
	done := make(chan error, 4)
	for range cap(done) {
		go func() {
			var err error
			for err == nil {
				select {
				case <-stop:
					done <- nil
					return
				default:
				}
				s := w.Snapshot()
				for i := range s.A {
					if s.A[i].Version != s.A[0].Version || s.B[i].Version != s.B[0].Version {
						err = fmt.Errorf("rows of versions %d and %d", s.A[i].Version, s.A[0].Version)
					}
				}
				if r, e := s.byRow.Get(7); e != nil || r.Version != s.A[0].Version {
					err = fmt.Errorf("index: %v, %v", r, e)
				}
				last.Store(s.A[0].Version)
			}
			done <- err
		}()
	}
	for v := 2; v < 12; v++ {
		put(t, a, waveFile(t, v), true)
		put(t, b, waveFile(t, v), true)
		for w.Snapshot().B[0].Version != int32(v) { // until the watch has seen it
			time.Sleep(time.Millisecond)
		}
	}
	close(stop)
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	w.Close()
}
