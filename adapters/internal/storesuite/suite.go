// Package storesuite holds the packages of object stores to what they promise, each against a real server.
package storesuite

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/storetest"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/source/remote"
)

// Store is what the packages of stores have in common.
type Store interface {
	Getter(url string) (remote.Getter, error)
	Create(ctx context.Context, url string, o *remote.WriteOptions) (*remote.Writer, error)
	List(ctx context.Context, prefix string) iter.Seq2[remote.Entry, error]
}

// Suite is a store with an empty bucket, or container, at a real server.
type Suite struct {
	Store  Store
	Prefix string // of the URLs in the bucket, such as s3://bucket/
	// Wrong is the store with credentials that are not right, nil when the server takes all.
	Wrong Store
	// Secrets are texts that no error may hold.
	Secrets []string
	// Missing is the prefix of a bucket that is not there.
	Missing string
	// Keys are keys that are worth a try, beside those that every store can have.
	Keys []string
	// Part is the least size of a part, and MemoryPart that for the test of memory, the same when it is 0.
	Part, MemoryPart int64
	// NoSuffix says that the store cannot give the end of an object of unknown size.
	NoSuffix bool
	// NoRace says that the server replaces an object against the condition of the request, in the way that parts take.
	NoRace bool
	// Copies says that the server copies ranges itself.
	Copies bool
	// Pages is a number of objects that takes several answers to list, 0 to leave that out.
	Pages int
	// Proxy stands before the server, and Makes reports whether a request makes an object.
	Proxy *storetest.Proxy
	Makes func(*http.Request) bool
	// Leftovers returns what the server keeps of uploads that were not completed.
	Leftovers func() []string
}

// Bytes are random bytes, the same for the same length.
func Bytes(n int) []byte {
	b := make([]byte, (n+7)/8*8)
	r := rand.New(rand.NewPCG(7, uint64(n)))
	for i := 0; i < len(b); i += 8 {
		u := r.Uint64()
		for j := range 8 {
			b[i+j] = byte(u >> (8 * j))
		}
	}
	return b[:n]
}

// Run runs the tests.
func (s *Suite) Run(t *testing.T) {
	t.Run("Keys", s.testKeys)
	t.Run("Ranges", s.testRanges)
	t.Run("Pinned", s.testPinned)
	t.Run("Refused", s.testRefused)
	t.Run("Held", s.testHeld)
	t.Run("NoOverwrite", s.testNoOverwrite)
	t.Run("Abort", s.testAbort)
	t.Run("Remove", s.testRemove)
	t.Run("LostAnswer", s.testLostAnswer)
	t.Run("Copy", s.Copy)
	t.Run("Pages", s.testPages)
	t.Run("Memory", s.testMemory)
}

// Put writes an object.
func (s *Suite) Put(t testing.TB, key string, content []byte) {
	t.Helper()
	w, err := s.Store.Create(t.Context(), s.Prefix+key, nil)
	storetest.Must(t, err)
	_, err = w.Write(content)
	storetest.Must(t, err)
	storetest.Must(t, w.Commit(t.Context()))
}

// Get sends one request, and returns the answer and its body.
func (s *Suite) Get(t testing.TB, url string, r remote.Request) (*remote.Response, []byte) {
	t.Helper()
	g, err := s.Store.Getter(url)
	storetest.Must(t, err)
	resp, err := g.Get(t.Context(), r)
	storetest.Must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	storetest.Must(t, err)
	return resp, body
}

// Whole reads an object of at most 1 GiB.
func (s *Suite) Whole(t testing.TB, key string) []byte {
	t.Helper()
	resp, body := s.Get(t, s.Prefix+key, remote.Request{Len: 1 << 30})
	switch {
	case resp.Status == 416 && resp.Size == 0, resp.Status == 200 && len(body) == 0:
		return nil
	case resp.Status != 206 && resp.Status != 200:
		t.Fatalf("%s: %d %s", key, resp.Status, resp.Message)
	}
	return body
}

func (s *Suite) testKeys(t *testing.T) {
	keys := append([]string{"plain", "keys/a", "keys/b/c.msg", "keys/with blank", "keys/ä€😀", "keys/50%25+1&x=y;z", "keys/(1)[2]{3}!$'*,:@^`~|"}, s.Keys...)
	for i, key := range keys {
		content := Bytes(100 + i)
		s.Put(t, key, content)
		if got := s.Whole(t, key); !bytes.Equal(got, content) {
			t.Errorf("%q: read %x, wrote %x", key, got, content)
		}
	}
	s.Put(t, "keys/empty", nil)
	if got := s.Whole(t, "keys/empty"); len(got) > 0 {
		t.Errorf("an empty object has %d bytes", len(got))
	}
	sizes := map[string]int64{s.Prefix + "keys/empty": 0}
	for i, key := range keys {
		if strings.HasPrefix(key, "keys/") {
			sizes[s.Prefix+key] = int64(100 + i)
		}
	}
	last := ""
	for e, err := range s.Store.List(t.Context(), s.Prefix+"keys/") {
		storetest.Must(t, err)
		if size, ok := sizes[e.Name]; !ok || size != e.Size {
			t.Errorf("lists %q of %d bytes, expected %d (%v)", e.Name, e.Size, size, ok)
		}
		delete(sizes, e.Name)
		if e.Name <= last {
			t.Errorf("lists %q behind %q", e.Name, last)
		}
		last = e.Name
		if e.Size > 0 {
			resp, _ := s.Get(t, e.Name, remote.Request{Len: 1})
			if resp.Version != e.Version || e.Version == "" {
				t.Errorf("%s: version %q in the list, %q when read", e.Name, e.Version, resp.Version)
			}
		}
	}
	for name := range sizes {
		t.Errorf("does not list %q", name)
	}
	for range s.Store.List(t.Context(), s.Prefix+"keys/") {
		break // a caller who has seen enough
	}
	for e, err := range s.Store.List(t.Context(), s.Prefix+"nothing/") {
		t.Errorf("lists %v, %v where there is nothing", e, err)
	}
}

func (s *Suite) testRanges(t *testing.T) {
	content := Bytes(100_000)
	s.Put(t, "ranges", content)
	url := s.Prefix + "ranges"
	check := func(r remote.Request, start, end int) {
		t.Helper()
		resp, body := s.Get(t, url, r)
		if resp.Status != 206 || resp.Start != int64(start) || resp.End != int64(end) || resp.Size != 100_000 ||
			resp.Length != int64(end-start) || resp.Version == "" || resp.Encoding != "" && resp.Encoding != "identity" {
			t.Fatalf("%+v: %+v", r, resp)
		}
		if !bytes.Equal(body, content[start:end]) {
			t.Fatalf("%+v: other bytes", r)
		}
	}
	check(remote.Request{Len: 1}, 0, 1)
	check(remote.Request{Start: 99_999, Len: 1}, 99_999, 100_000)
	check(remote.Request{Start: 99_990, Len: 50}, 99_990, 100_000)
	check(remote.Request{Len: 1 << 40}, 0, 100_000)
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		start := random.IntN(100_000)
		n := 1 + random.IntN(min(5000, 100_000-start))
		check(remote.Request{Start: int64(start), Len: int64(n)}, start, start+n)
	}
	if !s.NoSuffix {
		check(remote.Request{Len: 77, Suffix: true}, 99_923, 100_000)
		check(remote.Request{Len: 1 << 20, Suffix: true}, 0, 100_000)
	}
	if resp, _ := s.Get(t, url, remote.Request{Start: 100_010, Len: 5}); resp.Status != 416 {
		t.Errorf("a range behind the end: %+v", resp)
	}
}

func (s *Suite) testPinned(t *testing.T) {
	url := s.Prefix + "pinned"
	s.Put(t, "pinned", Bytes(1000))
	first, _ := s.Get(t, url, remote.Request{Len: 10})
	same, body := s.Get(t, url, remote.Request{Start: 10, Len: 10, Version: first.Version})
	if same.Status != 206 || same.Version != first.Version || !bytes.Equal(body, Bytes(1000)[10:20]) {
		t.Fatalf("the version that is there: %+v", same)
	}
	s.Put(t, "pinned", Bytes(1001))
	gone, body := s.Get(t, url, remote.Request{Start: 10, Len: 10, Version: first.Version})
	if gone.Status != 412 && gone.Status != 404 {
		t.Errorf("a version that is no longer there: %+v, body %q", gone, body)
	}
	second, _ := s.Get(t, url, remote.Request{Len: 10})
	if second.Status != 206 || second.Version == first.Version || second.Size != 1001 {
		t.Errorf("the new version: %+v", second)
	}
	t.Logf("%d %s", gone.Status, gone.Message)
}

func (s *Suite) testRefused(t *testing.T) {
	refused := func(store Store, url string, statuses ...int) {
		t.Helper()
		g, err := store.Getter(url)
		storetest.Must(t, err)
		resp, err := g.Get(t.Context(), remote.Request{Len: 10})
		storetest.Must(t, err)
		defer resp.Body.Close()
		if !slices.Contains(statuses, resp.Status) || strings.Contains(resp.Message, "\n") || resp.Message == "" && store == s.Wrong {
			t.Errorf("%s: %d %q", url, resp.Status, resp.Message)
		}
		s.noSecrets(t, resp.Message)
		t.Logf("%d %s", resp.Status, resp.Message)
	}
	list := func(store Store, prefix string, class error) {
		t.Helper()
		n := 0
		for e, err := range store.List(t.Context(), prefix) {
			if n++; err == nil || n > 1 || class != nil && !errors.Is(err, class) {
				t.Errorf("%s: lists %v, %v", prefix, e, err)
			}
			s.noSecrets(t, fmt.Sprint(err))
			t.Log(err)
		}
		if n == 0 {
			t.Errorf("%s: an empty list", prefix)
		}
	}
	create := func(store Store, url string, n int64) {
		t.Helper()
		w, err := store.Create(t.Context(), url, &remote.WriteOptions{PartSize: s.Part})
		storetest.Must(t, err)
		_, err = w.Write(Bytes(int(n)))
		if end := w.Commit(t.Context()); end == nil {
			t.Errorf("%s: written", url)
		} else {
			err = cmp.Or(err, end)
		}
		s.noSecrets(t, fmt.Sprint(err))
		t.Log(err)
	}
	refused(s.Store, s.Prefix+"is-not-there", 404)
	refused(s.Store, s.Missing+"is-not-there", 404)
	list(s.Store, s.Missing, fault.NotFound)
	create(s.Store, s.Missing+"x", 10)
	create(s.Store, s.Missing+"x", s.Part*2+1)
	if s.Wrong != nil {
		s.Put(t, "private", Bytes(10))
		refused(s.Wrong, s.Prefix+"private", 401, 403)
		list(s.Wrong, s.Prefix, nil)
		create(s.Wrong, s.Prefix+"private", 10)
		create(s.Wrong, s.Prefix+"private", s.Part*2+1)
		if !bytes.Equal(s.Whole(t, "private"), Bytes(10)) {
			t.Error("an object was replaced with wrong credentials")
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	g, err := s.Store.Getter(s.Prefix + "pinned")
	storetest.Must(t, err)
	if _, err := g.Get(cancelled, remote.Request{Len: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

func (s *Suite) noSecrets(t *testing.T, text string) {
	t.Helper()
	for _, secret := range s.Secrets {
		if strings.Contains(text, secret) {
			t.Errorf("a secret is told: %s", text)
		}
	}
}

// testHeld writes objects whose beginning is known last.
func (s *Suite) testHeld(t *testing.T) {
	for _, n := range []int64{100, s.Part, s.Part + 1, 2*s.Part + s.Part/3, 3 * s.Part} {
		for _, hold := range []int64{0, 64} {
			key := fmt.Sprintf("held-%d-%d", n, hold)
			content := Bytes(int(n))
			w, err := s.Store.Create(t.Context(), s.Prefix+key, &remote.WriteOptions{PartSize: s.Part, Hold: hold})
			storetest.Must(t, err)
			defer w.Abort(t.Context())
			changed := bytes.Clone(content)
			clear(changed[:hold])
			for p := range slices.Chunk(changed, 1_000_003) {
				_, err := w.Write(p)
				storetest.Must(t, err)
			}
			if resp, _ := s.Get(t, s.Prefix+key, remote.Request{Len: 1}); resp.Status != 404 {
				t.Errorf("%s can be read before Commit: %+v", key, resp)
			}
			if hold > 0 {
				_, err = w.WriteAt(content[:hold], 0)
				storetest.Must(t, err)
			}
			storetest.Must(t, w.Commit(t.Context()))
			if !bytes.Equal(s.Whole(t, key), content) {
				t.Errorf("%s: other bytes", key)
			}
		}
	}
	s.nothingLeft(t)
}

func (s *Suite) nothingLeft(t *testing.T) {
	t.Helper()
	if left := s.Leftovers(); len(left) > 0 {
		t.Errorf("left of uploads: %q", left)
	}
}

func (s *Suite) testNoOverwrite(t *testing.T) {
	o := &remote.WriteOptions{NoOverwrite: true, PartSize: s.Part}
	s.Put(t, "once", Bytes(10))
	if _, err := s.Store.Create(t.Context(), s.Prefix+"once", o); !errors.Is(err, fault.Conflict) {
		t.Errorf("an object that is there: %v", err)
	}
	for _, hold := range []int64{0, 10} {
		for _, n := range []int64{10, s.Part*2 + 1} {
			if hold > 0 && n > s.Part && s.NoRace {
				continue
			}
			o := *o
			o.Hold = hold
			key := fmt.Sprintf("once-%d-%d", n, hold)
			w, err := s.Store.Create(t.Context(), s.Prefix+key, &o)
			storetest.Must(t, err)
			_, err = w.Write(Bytes(int(n)))
			storetest.Must(t, err)
			s.Put(t, key, Bytes(20))
			if err := w.Commit(t.Context()); !errors.Is(err, fault.Conflict) {
				t.Errorf("%s: an object that came later: %v", key, err)
			}
			if !bytes.Equal(s.Whole(t, key), Bytes(20)) {
				t.Errorf("%s was replaced", key)
			}
			// The same bytes are somebody else's, too.
			w, err = s.Store.Create(t.Context(), s.Prefix+"same-"+key, &o)
			storetest.Must(t, err)
			_, err = w.Write(Bytes(int(n)))
			storetest.Must(t, err)
			s.Put(t, "same-"+key, Bytes(int(n)))
			if err := w.Commit(t.Context()); !errors.Is(err, fault.Conflict) {
				t.Errorf("same-%s, an object with the same bytes: %v", key, err)
			}
			w, err = s.Store.Create(t.Context(), s.Prefix+"new-"+key, &o)
			storetest.Must(t, err)
			_, err = w.Write(Bytes(int(n)))
			storetest.Must(t, err)
			storetest.Must(t, w.Commit(t.Context()))
			if !bytes.Equal(s.Whole(t, "new-"+key), Bytes(int(n))) {
				t.Errorf("new-%s: other bytes", key)
			}
		}
	}
	s.nothingLeft(t)
}

func (s *Suite) testAbort(t *testing.T) {
	for _, n := range []int64{10, s.Part*3 + 1} {
		for _, cancelled := range []bool{false, true} {
			for _, hold := range []int64{0, 10} {
				key := fmt.Sprintf("aborted-%d-%v-%d", n, cancelled, hold)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				w, err := s.Store.Create(ctx, s.Prefix+key, &remote.WriteOptions{PartSize: s.Part, Hold: hold})
				storetest.Must(t, err)
				_, err = w.Write(Bytes(int(n)))
				storetest.Must(t, err)
				if cancelled {
					cancel()
					if err := w.Commit(ctx); !errors.Is(err, context.Canceled) {
						t.Errorf("%s: committed: %v", key, err)
					}
				}
				storetest.Must(t, w.Abort(ctx))
				if resp, _ := s.Get(t, s.Prefix+key, remote.Request{Len: 1}); resp.Status != 404 {
					t.Errorf("%s can be read: %+v", key, resp)
				}
			}
		}
	}
	for e, err := range s.Store.List(t.Context(), s.Prefix+"aborted") {
		t.Errorf("there is %v, %v", e, err)
	}
	s.nothingLeft(t)
	// An object that was there stays.
	s.Put(t, "kept", Bytes(10))
	w, err := s.Store.Create(t.Context(), s.Prefix+"kept", &remote.WriteOptions{PartSize: s.Part})
	storetest.Must(t, err)
	_, err = w.Write(Bytes(int(2*s.Part + 1)))
	storetest.Must(t, err)
	storetest.Must(t, w.Abort(t.Context()))
	if !bytes.Equal(s.Whole(t, "kept"), Bytes(10)) {
		t.Error("an object is another after an upload that was aborted")
	}
}

// testRemove removes objects that were written, and none that has replaced them.
func (s *Suite) testRemove(t *testing.T) {
	for _, n := range []int64{10, s.Part*2 + 1} {
		for _, hold := range []int64{0, 10} {
			key := fmt.Sprintf("removed-%d-%d", n, hold)
			write := func() *remote.Writer {
				w, err := s.Store.Create(t.Context(), s.Prefix+key, &remote.WriteOptions{PartSize: s.Part, Hold: hold})
				storetest.Must(t, err)
				_, err = w.Write(Bytes(int(n)))
				storetest.Must(t, err)
				storetest.Must(t, w.Commit(t.Context()))
				return w
			}
			there := func(what string, status ...int) {
				t.Helper()
				if resp, _ := s.Get(t, s.Prefix+key, remote.Request{Len: 1}); !slices.Contains(status, resp.Status) {
					t.Errorf("%s, %s: %+v", key, what, resp)
				}
			}
			first := write()
			s.Put(t, key, Bytes(20))
			storetest.Must(t, first.Remove(t.Context()))
			there("replaced", 206)
			second := write()
			storetest.Must(t, second.Remove(t.Context()))
			there("removed", 404)
			storetest.Must(t, second.Remove(t.Context()))
		}
	}
	s.nothingLeft(t)
}

// testLostAnswer: the store makes the object, and its answer is lost. The writer finds that out, and can remove the object.
func (s *Suite) testLostAnswer(t *testing.T) {
	for _, n := range []int64{100, s.Part*2 + 1} {
		for _, once := range []bool{false, true} {
			key := fmt.Sprintf("lost-%d-%v", n, once)
			w, err := s.Store.Create(t.Context(), s.Prefix+key, &remote.WriteOptions{PartSize: s.Part, NoOverwrite: once})
			storetest.Must(t, err)
			_, err = w.Write(Bytes(int(n)))
			storetest.Must(t, err)
			end := s.Proxy.LoseAnswer(s.Makes)
			err = w.Commit(t.Context())
			if lost := end(); err != nil || !lost {
				t.Errorf("%s: %v, the answer was lost: %v", key, err, lost)
				continue
			}
			if !bytes.Equal(s.Whole(t, key), Bytes(int(n))) {
				t.Errorf("%s: other bytes", key)
			}
			storetest.Must(t, w.Remove(t.Context()))
			if resp, _ := s.Get(t, s.Prefix+key, remote.Request{Len: 1}); resp.Status != 404 {
				t.Errorf("%s is not removed: %+v", key, resp)
			}
		}
	}
	s.nothingLeft(t)
}

// stored is an object of the store as [remote.Writer.Copy] takes it.
type stored struct {
	source.Object
	name, version string
}

func (o stored) Name() string    { return o.name }
func (o stored) Version() string { return o.version }

// Copy copies ranges of an object to another.
func (s *Suite) Copy(t *testing.T) {
	content := Bytes(int(3*s.Part + 1000))
	s.Put(t, "copied from", content)
	resp, _ := s.Get(t, s.Prefix+"copied from", remote.Request{Len: 1})
	from := stored{source.Memory("", content), s.Prefix + "copied from", resp.Version}
	head := []byte("head")
	w, err := s.Store.Create(t.Context(), s.Prefix+"copied", &remote.WriteOptions{PartSize: s.Part, Hold: 4})
	storetest.Must(t, err)
	defer w.Abort(t.Context())
	_, err = w.Write([]byte("...."))
	storetest.Must(t, err)
	first, err := w.Copy(t.Context(), from, 1, int64(len(content))-1)
	storetest.Must(t, err)
	second, err := w.Copy(t.Context(), from, s.Part, 2*s.Part)
	storetest.Must(t, err)
	_, err = w.WriteAt(head, 0)
	storetest.Must(t, err)
	storetest.Must(t, w.Commit(t.Context()))
	if want := slices.Concat(head, content[1:], content[s.Part:3*s.Part]); !bytes.Equal(s.Whole(t, "copied"), want) {
		t.Error("other bytes")
	}
	if s.Copies != (first > 0) || s.Copies != (second == 2*s.Part) {
		t.Errorf("the store has copied %d and %d bytes", first, second)
	}
	if !s.Copies {
		return
	}
	s.Put(t, "copied from", content[1:])
	w, err = s.Store.Create(t.Context(), s.Prefix+"copied from another", &remote.WriteOptions{PartSize: s.Part})
	storetest.Must(t, err)
	defer w.Abort(t.Context())
	if _, err = w.Copy(t.Context(), from, 0, 2*s.Part); err == nil {
		err = w.Commit(t.Context())
	}
	if !errors.Is(err, fault.Changed) {
		t.Errorf("copied from an object that has changed: %v", err)
	}
}

func (s *Suite) testPages(t *testing.T) {
	for i := range s.Pages {
		s.Put(t, fmt.Sprintf("pages/%05d", i), []byte{1})
	}
	n := 0
	for e, err := range s.Store.List(t.Context(), s.Prefix+"pages/") {
		storetest.Must(t, err)
		if want := fmt.Sprintf("%spages/%05d", s.Prefix, n); e.Name != want {
			t.Fatalf("lists %s, expected %s", e.Name, want)
		}
		n++
	}
	if n != s.Pages {
		t.Errorf("lists %d objects of %d", n, s.Pages)
	}
}

// testMemory writes 200 MiB and counts what is allocated: the parts that are under way, and little more.
func (s *Suite) testMemory(t *testing.T) {
	const size = 200 << 20
	piece, part := Bytes(1<<20), cmp.Or(s.MemoryPart, s.Part)
	w, err := s.Store.Create(t.Context(), s.Prefix+"large", &remote.WriteOptions{PartSize: part, Parallel: 2, Hold: 64})
	storetest.Must(t, err)
	defer w.Abort(t.Context())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for w.Len() < size {
		_, err := w.Write(piece)
		storetest.Must(t, err)
	}
	storetest.Must(t, w.Commit(t.Context()))
	runtime.ReadMemStats(&after)
	// Four parts, of which the first grew, and what 200 requests of a client take.
	got, most := int64(after.TotalAlloc-before.TotalAlloc), 8*part+48<<20
	t.Logf("%d MiB allocated for 200 MiB in parts of %d MiB", got>>20, part>>20)
	if got > most {
		t.Errorf("%d bytes allocated for %d, at most %d expected", got, size, most)
	}
	for _, at := range []int64{0, size/2 - 5, size - 10} {
		resp, body := s.Get(t, s.Prefix+"large", remote.Request{Start: at, Len: 10})
		want := slices.Concat(piece, piece)[at%(1<<20):][:10]
		if resp.Size != size || !bytes.Equal(body, want) {
			t.Errorf("at %d: %+v", at, resp)
		}
	}
}
