package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spilehq/spile/adapters/s3"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/series"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/source/diskcache"
	"github.com/spilehq/spile/source/remote"
)

const (
	bucket        = "soak"
	prefix        = "s3://" + bucket + "/"
	document      = prefix + "read/document.msg"
	plainObject   = prefix + "read/plain"
	artifact      = prefix + "read/artifact/"
	writtenPrefix = "written/"

	numTexts  = 4000
	numSeries = 20_000
	part      = 5 << 20 // the least of S3
)

// truth is what is on the server.
type truth struct {
	texts []string
	plain []byte
	names []string // of the objects that are read
}

// make writes what is read.
func (t *truth) make(ctx context.Context, store *s3.Store) error {
	random := rand.New(rand.NewPCG(1, 2))
	for range numTexts {
		t.texts = append(t.texts, fmt.Sprintf("%0*x", 1+random.IntN(8000), random.Uint64()))
	}
	t.plain = content(24<<20+123, 3)
	encoded, err := msglc.Dumps(map[string]any{"texts": t.texts}, nil)
	if err != nil {
		return err
	}
	for url, p := range map[string][]byte{document: encoded, plainObject: t.plain} {
		if err := put(ctx, store, url, p); err != nil {
			return err
		}
	}
	generation := series.UUID{15: 1}
	w, err := series.NewWriter(ctx, &target{store}, &series.Manifest{RegionID: 1, Generation: generation, Tags: []series.Tag{{ColumnID: 1, Name: "host"}}},
		&series.WriteOptions{BlockSeries: 256, PartBytes: 200_000})
	if err != nil {
		return err
	}
	defer w.Abort()
	for i := range numSeries {
		if err := w.Add(record(i)); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	for e, err := range store.List(ctx, prefix+"read/") {
		if err != nil {
			return err
		}
		t.names = append(t.names, e.Name)
	}
	return nil
}

func record(i int) series.Record {
	return series.Record{ID: series.ID{Table: 1, TSID: uint64(i)}, RowCount: uint64(1 + i%9), Labels: []series.Label{{Name: "host", Value: host(i)}}}
}

func host(i int) string { return fmt.Sprintf("web-%04d", i%5000) }

func content(n int, seed uint64) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24)})
	r.Read(b)
	return b
}

func put(ctx context.Context, store *s3.Store, url string, p []byte) error {
	w, err := store.Create(ctx, url, nil)
	if err != nil {
		return err
	}
	defer w.Abort(ctx)
	if _, err := w.Write(p); err != nil {
		return err
	}
	return w.Commit(ctx)
}

// target writes the artifact.
type target struct{ store *s3.Store }

type object struct {
	*remote.Writer
	ctx context.Context
}

func (t *target) Create(ctx context.Context, name string) (series.Output, error) {
	w, err := t.store.Create(ctx, artifact+name, nil)
	return &object{w, ctx}, err
}
func (t *target) Discard() error { return nil }
func (o *object) Commit() error  { return o.Writer.Commit(o.ctx) }
func (o *object) Abort()         { o.Writer.Abort(o.ctx) }

// operation is one of the things that are done.
type operation struct {
	name string
	do   func(*state, context.Context, *rand.Rand) error
}

var operations = [...]operation{
	{"values of a document", (*state).readValues},
	{"ranges", (*state).readRanges},
	{"whole objects", (*state).readWhole},
	{"queries of series", (*state).readSeries},
	{"cached reads", (*state).readCached},
	{"lists", (*state).list},
	{"writes", (*state).write},
	{"writes given up", (*state).abort},
}

// work does things until the time is over.
func (s *state) work(length time.Duration, workers int, round uint64) {
	end := time.Now().Add(length)
	var work sync.WaitGroup
	for i := range workers {
		work.Go(func() {
			random := rand.New(rand.NewPCG(round, uint64(i)))
			for time.Now().Before(end) && s.wrong.Load() == 0 {
				kind := random.IntN(len(operations))
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
				err := operations[kind].do(s, ctx, random)
				cancel()
				s.done.Add(1)
				s.kinds[kind].Add(1)
				switch {
				case err == nil:
				case errors.Is(err, errWrong), errors.Is(err, fault.Corrupt), errors.Is(err, fault.Changed):
					s.wrong.Add(1)
					fmt.Fprintf(os.Stderr, "soak: %s: %v\n", operations[kind].name, err)
				default:
					s.gaveUp.Add(1)
					fmt.Fprintf(os.Stderr, "gave up: %s: %v\n", operations[kind].name, err)
				}
			}
		})
	}
	work.Wait()
}

// open opens an object over the bad network.
func (s *state) open(ctx context.Context, url string) (source.Object, error) {
	g, err := s.store.Getter(url)
	if err != nil {
		return nil, err
	}
	return remote.Open(ctx, g, &remote.Options{Retries: 8, Timeout: time.Minute})
}

func (s *state) readValues(ctx context.Context, random *rand.Rand) error {
	obj, err := s.open(ctx, document)
	if err != nil {
		return err
	}
	r, err := msglc.Open(ctx, obj, nil)
	if err != nil {
		obj.Close()
		return err
	}
	defer r.Close()
	for range 1 + random.IntN(10) {
		i := random.IntN(numTexts)
		n, err := r.Find(ctx, msglc.Path{msglc.TextStep("texts"), msglc.IndexStep(int64(i))})
		if err != nil {
			return err
		}
		var text string
		if err := n.Decode(ctx, &text); err != nil {
			return err
		}
		if text != s.texts[i] {
			return wrongf("text %d of the document is %.50q", i, text)
		}
	}
	return nil
}

func (s *state) readRanges(ctx context.Context, random *rand.Rand) error {
	obj, err := s.open(ctx, plainObject)
	if err != nil {
		return err
	}
	defer obj.Close()
	var ranges []source.Range
	for range 1 + random.IntN(20) {
		n := 1 + random.IntN(1<<random.IntN(22))
		start := random.IntN(len(s.plain) - n)
		ranges = append(ranges, source.Range{Start: int64(start), End: int64(start + n)})
	}
	slices.SortFunc(ranges, func(a, b source.Range) int { return int(a.Start - b.Start) })
	got, err := source.Fetch(ctx, obj, ranges)
	if err != nil {
		return err
	}
	for i, r := range ranges {
		if !bytes.Equal(got[i], s.plain[r.Start:r.End]) {
			return wrongf("the bytes of %v are others", r)
		}
	}
	return nil
}

func (s *state) readWhole(ctx context.Context, _ *rand.Rand) error {
	obj, err := s.open(ctx, plainObject)
	if err != nil {
		return err
	}
	defer obj.Close()
	r := source.NewReader(ctx, obj, 0, obj.Size(), 0)
	p := make([]byte, 100_000)
	for at := 0; ; {
		n, err := io.ReadFull(r, p)
		if !bytes.Equal(p[:n], s.plain[at:at+n]) {
			return wrongf("the bytes behind %d are others", at)
		}
		at += n
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			if at != len(s.plain) {
				return wrongf("ends after %d bytes of %d", at, len(s.plain))
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *state) readSeries(ctx context.Context, random *rand.Rand) error {
	a, err := series.Open(ctx, func(ctx context.Context, name string) (source.Object, error) { return s.open(ctx, artifact+name) }, nil)
	if err != nil {
		return err
	}
	defer a.Close()
	of := random.IntN(5000)
	m, err := series.NewMatcher(series.Equal, "host", host(of))
	if err != nil {
		return err
	}
	i := of
	for r, err := range a.Select(ctx, &series.Query{Matchers: []*series.Matcher{m}}) {
		if err != nil {
			return err
		}
		if want := record(i); r.ID != want.ID || r.RowCount != want.RowCount || !slices.Equal(r.Labels, want.Labels) {
			return wrongf("series %+v, want %+v", r, want)
		}
		i += 5000
	}
	if i < numSeries {
		return wrongf("the series of %s end before %d", host(of), i)
	}
	return nil
}

// readCached reads through a cache in a folder, which all share and which is too small for all.
func (s *state) readCached(ctx context.Context, random *rand.Rand) error {
	cache, err := diskcache.Open(filepath.Join(s.dir, "cache"), 8<<20)
	if err != nil {
		return err
	}
	obj, err := s.open(ctx, plainObject)
	if err != nil {
		return err
	}
	kept := cache.Object(plainObject, obj, nil)
	defer kept.Close()
	for range 1 + random.IntN(8) {
		n := 1 + random.IntN(200_000)
		start := random.IntN(len(s.plain) - n)
		p := make([]byte, n)
		if err := kept.ReadAt(ctx, p, int64(start)); err != nil {
			return err
		}
		if !bytes.Equal(p, s.plain[start:start+n]) {
			return wrongf("the bytes at %d, through the cache, are others", start)
		}
	}
	return nil
}

func (s *state) list(ctx context.Context, _ *rand.Rand) error {
	var names []string
	for e, err := range s.store.List(ctx, prefix+"read/") {
		if err != nil {
			return err
		}
		names = append(names, e.Name)
	}
	if !slices.Equal(names, s.names) {
		return wrongf("lists %q, want %q", names, s.names)
	}
	return nil
}

// writing begins an object under a new name and writes to it.
func (s *state) writing(ctx context.Context, random *rand.Rand) (w *remote.Writer, p []byte, err error) {
	url := fmt.Sprintf("%s%s%016x", prefix, writtenPrefix, random.Uint64())
	n := random.IntN(100_000)
	if random.IntN(2) == 0 {
		n = random.IntN(20 << 20)
	}
	p = content(n, random.Uint64())
	o := &remote.WriteOptions{PartSize: part, NoOverwrite: random.IntN(2) == 0}
	if random.IntN(2) == 0 {
		o.Hold = int64(min(n, 64))
	}
	if w, err = s.store.Create(ctx, url, o); err != nil {
		return nil, nil, err
	}
	held := bytes.Clone(p)
	clear(held[:o.Hold])
	if _, err = w.Write(held); err == nil && o.Hold > 0 {
		_, err = w.WriteAt(p[:o.Hold], 0)
	}
	return w, p, err
}

// write writes an object, reads it over a good network, and removes it.
func (s *state) write(ctx context.Context, random *rand.Rand) error {
	w, p, err := s.writing(ctx, random)
	if err == nil {
		err = w.Commit(ctx)
	}
	if w == nil {
		return err
	}
	if err != nil {
		s.discard(ctx, w)
		// The store may have made the object, and its answer have been lost. Then it is the right one.
		if bad := s.compare(ctx, w.Name(), p, true); bad != nil {
			return bad
		}
		s.kept.Add(1)
		return err
	}
	if err := s.compare(ctx, w.Name(), p, false); err != nil {
		return err
	}
	if err := w.Remove(ctx); err != nil {
		s.kept.Add(1)
		return err
	}
	return s.absent(ctx, w.Name())
}

// abort gives up writing, by itself or because the context ends.
func (s *state) abort(ctx context.Context, random *rand.Rand) error {
	writing, cancel := context.WithCancel(ctx)
	defer cancel()
	if random.IntN(2) == 0 {
		defer time.AfterFunc(time.Duration(random.IntN(int(time.Second))), cancel).Stop()
	}
	w, _, err := s.writing(writing, random)
	if w == nil {
		if errors.Is(err, context.Canceled) {
			err = nil
		}
		return err
	}
	s.discard(ctx, w)
	return s.absent(ctx, w.Name())
}

// discard aborts, and notes when something may be left.
func (s *state) discard(ctx context.Context, w *remote.Writer) {
	if w.Abort(ctx) != nil {
		s.kept.Add(1)
	}
}

// compare reads an object over a good network.
func (s *state) compare(ctx context.Context, url string, want []byte, mayMiss bool) error {
	g, err := s.direct.Getter(url)
	if err != nil {
		return err
	}
	obj, err := remote.Open(ctx, g, nil)
	if errors.Is(err, fault.NotFound) {
		if mayMiss {
			return nil
		}
		return wrongf("%s was written, and is not there", url)
	}
	if err != nil {
		return err
	}
	defer obj.Close()
	if obj.Size() != int64(len(want)) {
		return wrongf("%s has %d bytes, %d were written", url, obj.Size(), len(want))
	}
	got := make([]byte, len(want))
	if err := obj.ReadAt(ctx, got, 0); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return wrongf("%s has other bytes than were written", url)
	}
	return nil
}

// absent checks that there is no object.
func (s *state) absent(ctx context.Context, url string) error {
	g, err := s.direct.Getter(url)
	if err != nil {
		return err
	}
	obj, err := remote.Open(ctx, g, nil)
	if errors.Is(err, fault.NotFound) {
		return nil
	}
	if err == nil {
		obj.Close()
		return wrongf("%s is there, and was removed or never committed", url)
	}
	return err
}
