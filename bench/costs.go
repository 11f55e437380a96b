package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/tinylib/msgp/msgp"

	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

func measureCosts(s *setup) ([]row, error) {
	d, err := newDocument(int(s.decode))
	if err != nil {
		return nil, err
	}
	jobs, rows, err := costs(s.dir, d)
	if err != nil {
		return nil, err
	}
	measured, err := s.measureJobs(jobs)
	if err != nil {
		return nil, err
	}
	file, err := s.documentFile(int64(s.archive))
	if err != nil {
		return nil, err
	}
	r, err := shareOfTable("table of contents, share of the archive of runs", file)
	return append(append(measured, rows...), r), err
}

// costs are the jobs in which a table of contents does not pay, or shows its price. They have no targets.
func costs(dir string, d *document) (jobs []job, rows []row, err error) {
	whole := filePair{dir: dir, name: "mixed"}
	if err := whole.write(d.msgpack); err != nil {
		return nil, nil, err
	}
	small, err := newDocument(100_000)
	if err != nil {
		return nil, nil, err
	}
	middle := filePair{dir: dir, name: "small"}
	if err := middle.write(small.msgpack); err != nil {
		return nil, nil, err
	}
	one := filePair{dir: dir, name: "tiny"}
	tiny, err := d.records[:1].MarshalMsg(nil)
	if err != nil {
		return nil, nil, err
	}
	if err := one.write(tiny); err != nil {
		return nil, nil, err
	}
	size := func(b []byte) string { return bytesText(float64(len(b))) }
	last := len(small.records) - 1
	jobs = []job{
		{
			name: "all of a document of " + size(d.msgpack), bytes: int64(len(d.msgpack)),
			ours: whole.lazily(nil), peers: []contender{whole.atOnce("a plain file, value.Decode", decodeOurs, nil), whole.atOnce("a plain file, msgp", decodeMsgp, nil)},
		},
		{
			name: "one value of a document of " + size(small.msgpack),
			ours: middle.lazily(itemPath(last)), peers: []contender{middle.atOnce("a plain file, msgp", decodeMsgp, itemOf(last))},
		},
		{
			name: "one value of a document of " + size(tiny),
			ours: one.lazily(itemPath(0)), peers: []contender{one.atOnce("a plain file, msgp", decodeMsgp, itemOf(0))},
		},
		{
			name: "one value of a document of " + size(d.msgpack) + ", last record",
			ours: whole.lazily(itemPath(len(d.records) - 1)), peers: []contender{whole.scanned(itemPath(len(d.records) - 1))},
		},
	}
	pin, err := pinning(whole.archive())
	if err != nil {
		return nil, nil, err
	}
	jobs = append(jobs, pin)
	for i := range jobs {
		jobs[i].section, jobs[i].oneCore = "costs", true
	}
	r, err := shareOfTable("table of contents, share of the mixed document", whole.archive())
	return jobs, []row{r}, err
}

// filePair is a value in two files: plain, and with a table of contents.
type filePair struct{ dir, name string }

func (p filePair) plain() string   { return filepath.Join(p.dir, p.name+".msgpack") }
func (p filePair) archive() string { return filepath.Join(p.dir, p.name+"-mixed.msg") }

func (p filePair) write(payload []byte) error {
	if err := os.WriteFile(p.plain(), payload, 0o666); err != nil {
		return err
	}
	f, err := source.CreateAtomic(p.archive())
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := msglc.Index(context.Background(), f, source.Memory(p.name, payload), nil); err != nil {
		return err
	}
	return f.Commit()
}

func itemPath(i int) msglc.Path {
	return msglc.Path{msglc.IndexStep(int64(i)), msglc.TextStep("pos"), msglc.TextStep("x")}
}

// itemOf is itemPath on a decoded value.
func itemOf(i int) func(any) (any, error) {
	return func(v any) (any, error) {
		list, _ := v.([]any)
		if i >= len(list) {
			return nil, fmt.Errorf("no item %d", i)
		}
		rec, _ := list[i].(map[string]any)
		pos, _ := rec["pos"].(map[string]any)
		return pos["x"], nil
	}
}

// lazily opens the archive and reads the value at a path.
func (p filePair) lazily(path msglc.Path) contender {
	var meter source.Meter
	return decoding("Spile", func() (any, error) {
		obj, err := source.OpenFile(p.archive())
		if err != nil {
			return nil, err
		}
		r, err := msglc.Open(context.Background(), meter.Object(obj), nil)
		return valueAt(obj, r, err, path)
	}).counting(&meter)
}

// scanned reads the value at a path of the plain file, by a scan.
func (p filePair) scanned(path msglc.Path) contender {
	var meter source.Meter
	return decoding("Spile, a plain file, by a scan", func() (any, error) {
		obj, err := source.OpenFile(p.plain())
		if err != nil {
			return nil, err
		}
		r, err := msglc.OpenRaw(context.Background(), meter.Object(obj), value.Msgpack, nil)
		return valueAt(obj, r, err, path)
	}).counting(&meter)
}

func (c contender) counting(m *source.Meter) contender {
	c.bytesRead = func() int64 { return m.Receipt().Bytes }
	return c
}

// valueAt reads a value of a reader that was just opened, and closes it.
func valueAt(obj source.Object, r *msglc.Reader, err error, path msglc.Path) (any, error) {
	if err != nil {
		obj.Close()
		return nil, err
	}
	defer r.Close()
	ctx := context.Background()
	n, err := r.Find(ctx, path)
	if err != nil {
		return nil, err
	}
	return n.Value(ctx)
}

// atOnce reads the whole plain file, decodes it, and picks a value.
func (p filePair) atOnce(name string, decode func([]byte) (any, error), pick func(any) (any, error)) contender {
	return decoding(name, func() (any, error) {
		b, err := os.ReadFile(p.plain())
		if err != nil {
			return nil, err
		}
		v, err := decode(b)
		if err == nil && pick != nil {
			v, err = pick(v)
		}
		return v, err
	})
}

func decodeOurs(b []byte) (any, error) { return value.Decode(value.Msgpack, b, value.Limits{}) }

func decodeMsgp(b []byte) (any, error) {
	v, _, err := msgp.ReadIntfBytes(b)
	return v, err
}

// pinning is the job of reading 64 bytes of a file that is open, with and without the check that it has not changed.
func pinning(file string) (job, error) {
	pinned, err := source.OpenFile(file)
	if err != nil {
		return job{}, err
	}
	mapped, err := source.OpenMmap(file)
	if err != nil {
		return job{}, err
	}
	bare, err := os.Open(file)
	if err != nil {
		return job{}, err
	}
	ctx := context.Background()
	size := pinned.Size()
	return job{
		name: "64 bytes at random of an open file",
		ours: reading("Spile", size, func(p []byte, off int64) error { return pinned.ReadAt(ctx, p, off) }),
		peers: []contender{
			reading("Spile, mapped", size, func(p []byte, off int64) error { return mapped.ReadAt(ctx, p, off) }),
			reading("os.File, no check", size, func(p []byte, off int64) error {
				_, err := bare.ReadAt(p, off)
				return err
			}),
		},
	}, nil
}

func reading(name string, size int64, read func(p []byte, off int64) error) contender {
	random := rand.New(rand.NewPCG(8, 9))
	p := make([]byte, 64)
	return contender{
		name: name,
		run:  func() error { return read(p, random.Int64N(size-int64(len(p)))) },
		answer: func() (any, error) {
			err := read(p, size/2)
			return string(p), err
		},
	}
}

// shareOfTable is how much of a document its table of contents is.
func shareOfTable(name, file string) (row, error) {
	obj, err := source.OpenFile(file)
	if err != nil {
		return row{}, err
	}
	r, err := msglc.Open(context.Background(), obj, nil)
	if err != nil {
		obj.Close()
		return row{}, err
	}
	defer r.Close()
	info := r.Info()
	return row{
		Section: "costs", Job: name,
		Ours: figure{Value: 100 * float64(info.TOCSize) / float64(obj.Size()), Unit: share},
		Note: strconv.FormatInt(info.TOCSize, 10) + " bytes",
	}, nil
}
