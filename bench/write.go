package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/tinylib/msgp/msgp"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

func measureWrite(s *setup) ([]row, error) {
	d, err := newDocument(int(s.scan))
	if err != nil {
		return nil, err
	}
	rows, err := s.measureJobs([]job{indexing(d)})
	if err != nil {
		return nil, err
	}
	if d, err = newDocument(int(s.decode)); err != nil {
		return nil, err
	}
	written, err := s.measureJobs(writings(d))
	return append(rows, written...), err
}

// indexing is the job of giving an encoded document a table of contents.
func indexing(d *document) job {
	ctx := context.Background()
	out := new(memoryTarget)
	index := func() error {
		out.reset()
		return msglc.Index(ctx, out, source.Memory("mixed.msgpack", d.msgpack), nil)
	}
	var copied []byte
	duplicate := func() error {
		copied = append(copied[:0], d.msgpack...)
		return nil
	}
	return job{
		section: "write", name: "index msgpack", bytes: int64(len(d.msgpack)), oneCore: true, throughput: 500e6,
		ours: contender{name: "Spile", run: index, answer: func() (any, error) {
			if err := index(); err != nil {
				return nil, err
			}
			return out.payload()
		}},
		peers: []contender{{name: "a copy in memory", run: duplicate, answer: func() (any, error) {
			err := duplicate()
			return bytes.Clone(copied), err
		}}},
	}
}

// writings are the jobs of making a document.
func writings(d *document) []job {
	maps := d.maps()
	var buf []byte // kept between runs, as the target of ours is
	return []job{
		{
			section: "write", name: "pack JSON", bytes: int64(len(d.json)), oneCore: true,
			ours: packing("Spile", func(w *msglc.Writer) error {
				return value.ReadJSON(w, bytes.NewReader(d.json), int64(len(d.json)), value.Msgpack, nil, nil)
			}),
			peers: []contender{
				encoding("encoding/json to any, then vmihailenco", func() ([]byte, error) {
					var v any
					if err := json.Unmarshal(d.json, &v); err != nil {
						return nil, err
					}
					return msgpack.Marshal(v)
				}).atLeast(3),
			},
		},
		{
			section: "write", name: "write any, with its table of contents", bytes: int64(len(d.msgpack)), oneCore: true,
			ours: writing(maps),
			peers: []contender{
				encoding("msgp AppendIntf", func() (_ []byte, err error) {
					buf, err = msgp.AppendIntf(buf[:0], maps)
					return buf, err
				}).atLeast(1 / 1.5),
			},
		},
		{
			section: "write", name: "write structs, with their table of contents", bytes: int64(len(d.msgpack)), oneCore: true,
			ours: writing(d.records),
			peers: []contender{
				encoding("msgp, generated code", func() (_ []byte, err error) {
					buf, err = d.records.MarshalMsg(buf[:0])
					return buf, err
				}).atLeast(1 / 1.5),
				encoding("vmihailenco Marshal", func() ([]byte, error) { return msgpack.Marshal(d.records) }),
			},
		},
		{
			section: "write", name: "encode any, no table of contents", bytes: int64(len(d.msgpack)), oneCore: true,
			ours: encoding("Spile", func() (_ []byte, err error) {
				buf, err = value.Append(buf[:0], value.Msgpack, maps)
				return buf, err
			}),
			peers: []contender{
				encoding("msgp AppendIntf", func() (_ []byte, err error) {
					buf, err = msgp.AppendIntf(buf[:0], maps)
					return buf, err
				}),
			},
		},
	}
}

// packing is a contender that writes an archive whose payload comes from fill.
func packing(name string, fill func(*msglc.Writer) error) contender {
	out := new(memoryTarget)
	run := func() error {
		out.reset()
		w, err := msglc.NewWriter(context.Background(), out, nil)
		if err != nil {
			return err
		}
		if err := fill(w); err != nil {
			return err
		}
		return w.Close()
	}
	return contender{name: name, run: run, answer: func() (any, error) {
		if err := run(); err != nil {
			return nil, err
		}
		payload, err := out.payload()
		if err != nil {
			return nil, err
		}
		return decoded(payload)
	}}
}

// writing is a contender that writes a Go value as an archive.
func writing(v any) contender {
	return packing("Spile", func(w *msglc.Writer) error { return w.WriteValue(v) })
}

// encoding is a contender that gives encoded bytes.
func encoding(name string, encode func() ([]byte, error)) contender {
	return contender{
		name: name,
		run:  func() error { _, err := encode(); return err },
		answer: func() (any, error) {
			b, err := encode()
			if err != nil {
				return nil, err
			}
			return decoded(b)
		},
	}
}

// decoded reads what a contender has written, with a decoder that is not ours. A JSON contender makes floats of
// integers, so that all numbers are floats in an answer.
func decoded(payload []byte) (any, error) {
	v, rest, err := msgp.ReadIntfBytes(payload)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes behind the value", len(rest))
	}
	return numbers(plain(v)), err
}

// memoryTarget is an archive in memory whose space is kept between runs.
type memoryTarget struct{ b []byte }

func (t *memoryTarget) reset() { t.b = t.b[:0] }

func (t *memoryTarget) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	return len(p), nil
}

func (t *memoryTarget) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 || off+int64(len(p)) > int64(len(t.b)) {
		return 0, fmt.Errorf("write of %d bytes at %d into %d", len(p), off, len(t.b))
	}
	return copy(t.b[off:], p), nil
}

// payload returns the payload of the archive, which it opens.
func (t *memoryTarget) payload() ([]byte, error) {
	ctx := context.Background()
	r, err := msglc.Open(ctx, source.Memory("archive", t.b), nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r.ProtocolRawData(ctx))
}
