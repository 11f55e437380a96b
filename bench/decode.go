package main

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"

	"github.com/fxamacker/cbor/v2"
	"github.com/tinylib/msgp/msgp"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/spilehq/spile/value"
)

// roomy lets the CBOR peer read what ours reads by default, into the map type that ours gives.
var roomy = func() cbor.DecMode {
	mode, err := cbor.DecOptions{
		MaxArrayElements: 1 << 30, MaxMapPairs: 1 << 30, MaxNestedLevels: 1000, DefaultMapType: reflect.TypeFor[map[string]any](),
	}.DecMode()
	if err != nil {
		panic(err) // the options are constants
	}
	return mode
}()

func measureDecode(s *setup) ([]row, error) {
	d, err := newDocument(int(s.decode))
	if err != nil {
		return nil, err
	}
	jobs := decodings(d)
	d = nil
	rows, err := s.measureJobs(jobs)
	if err != nil {
		return nil, err
	}
	if d, err = newDocument(int(s.scan)); err != nil {
		return nil, err
	}
	passed, err := s.measureJobs(passings(d))
	return append(rows, passed...), err
}

// decodings are the jobs of reading a whole document. They keep its encoded forms alone: what else lives in memory, the
// collector would visit during every run, and all contenders would look more alike than they are.
func decodings(d *document) []job {
	packed, inCBOR := d.msgpack, d.cbor
	return []job{
		toAny("msgpack to any, maps of 12 pairs", packed),
		toAny("msgpack to any, maps of 8 pairs", d.narrow),
		{
			section: "decode", name: "the maps and lists of that alone, 12 pairs", bytes: int64(len(packed)), oneCore: true,
			ours: building(packed),
		},
		{
			section: "decode", name: "msgpack to structs", bytes: int64(len(packed)), oneCore: true,
			ours: decoding("Spile", func() (any, error) {
				var r records
				err := value.Unmarshal(value.Msgpack, packed, value.Limits{}, &r)
				return r, err
			}),
			peers: []contender{
				decoding("msgp, generated code", func() (any, error) {
					var r records
					_, err := r.UnmarshalMsg(packed)
					return r, err
				}),
				decoding("vmihailenco Unmarshal", func() (any, error) {
					var r records
					err := msgpack.Unmarshal(packed, &r)
					return r, err
				}),
			},
		},
		{
			section: "decode", name: "CBOR to any", bytes: int64(len(inCBOR)), oneCore: true,
			ours: decoding("Spile", func() (any, error) { return value.Decode(value.CBOR, inCBOR, value.Limits{}) }),
			peers: []contender{
				decoding("fxamacker Unmarshal", func() (v any, err error) {
					err = roomy.Unmarshal(inCBOR, &v)
					return v, err
				}),
			},
		},
		{
			section: "decode", name: "msgpack to JSON text", bytes: int64(len(packed)), oneCore: true,
			ours: printing("Spile", func(w io.Writer) error { return printJSON(w, value.Msgpack, packed) }),
			peers: []contender{
				printing("msgp CopyToJSON", func(w io.Writer) error {
					_, err := msgp.CopyToJSON(w, bytes.NewReader(packed))
					return err
				}).atLeast(3),
				printing("msgp UnmarshalAsJSON", func(w io.Writer) error {
					_, err := msgp.UnmarshalAsJSON(w, packed)
					return err
				}).atLeast(3),
			},
		},
		{
			section: "decode", name: "CBOR to JSON text", bytes: int64(len(inCBOR)), oneCore: true,
			ours: printing("Spile", func(w io.Writer) error { return printJSON(w, value.CBOR, inCBOR) }),
			peers: []contender{
				printing("fxamacker to any, then encoding/json", func(w io.Writer) error {
					var v any
					if err := roomy.Unmarshal(inCBOR, &v); err != nil {
						return err
					}
					return json.NewEncoder(w).Encode(v)
				}),
			},
		},
	}
}

// toAny is the job of reading a document into Go's maps and lists.
func toAny(name string, packed []byte) job {
	return job{
		section: "decode", name: name, bytes: int64(len(packed)), oneCore: true,
		ours: decoding("Spile", func() (any, error) { return value.Decode(value.Msgpack, packed, value.Limits{}) }),
		peers: []contender{
			decoding("msgp ReadIntfBytes", func() (any, error) {
				v, _, err := msgp.ReadIntfBytes(packed)
				return v, err
			}).atLeast(1.5),
			decoding("msgp Reader.ReadIntf", func() (any, error) {
				return msgp.NewReader(bytes.NewReader(packed)).ReadIntf()
			}).atLeast(1.5),
			decoding("vmihailenco Unmarshal", func() (v any, err error) {
				err = msgpack.Unmarshal(packed, &v)
				return v, err
			}).atLeast(3),
		},
	}
}

// building makes the maps and lists of a document of records out of one decoded record, again and again: what any
// decoder pays that gives Go maps, before it has read a byte.
func building(packed []byte) contender {
	build := func() (any, error) {
		n, rest, err := msgp.ReadArrayHeaderBytes(packed)
		if err != nil {
			return nil, err
		}
		record, _, err := msgp.ReadIntfBytes(rest)
		if err != nil {
			return nil, err
		}
		list := make([]any, n)
		for i := range list {
			list[i] = rebuilt(record)
		}
		return list, nil
	}
	return contender{
		name:   "no decoder",
		run:    func() error { _, err := build(); return err },
		answer: build,
	}
}

func rebuilt(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, x := range v {
			m[k] = rebuilt(x)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, x := range v {
			list[i] = rebuilt(x)
		}
		return list
	}
	return v
}

// passings are the jobs of passing over a whole document.
func passings(d *document) []job {
	packed, inCBOR := d.msgpack, d.cbor
	return []job{
		{
			section: "decode", name: "pass over msgpack", bytes: int64(len(packed)), oneCore: true, throughput: 1.5e9,
			ours: passing("Spile", func() (int, error) { return value.Skip(value.Msgpack, packed, 1, value.Limits{}) }),
			peers: []contender{
				passing("msgp Skip", func() (int, error) {
					rest, err := msgp.Skip(packed)
					return len(packed) - len(rest), err
				}),
			},
		},
		{
			section: "decode", name: "pass over CBOR", bytes: int64(len(inCBOR)), oneCore: true, throughput: 1.5e9,
			ours: passing("Spile", func() (int, error) { return value.Skip(value.CBOR, inCBOR, 1, value.Limits{}) }),
			peers: []contender{
				// It checks the same: the structure, not the UTF-8 of strings.
				passing("fxamacker Wellformed", func() (int, error) { return len(inCBOR), roomy.Wellformed(inCBOR) }),
			},
		},
	}
}

func (c contender) atLeast(target float64) contender {
	c.target = target
	return c
}

// decoding is a contender that gives Go values.
func decoding(name string, decode func() (any, error)) contender {
	return contender{
		name: name,
		run:  func() error { _, err := decode(); return err },
		answer: func() (any, error) {
			v, err := decode()
			return plain(v), err
		},
	}
}

// printing is a contender that writes JSON text. The texts may differ in how they write a number, so it is the values
// that are compared.
func printing(name string, print func(io.Writer) error) contender {
	var out bytes.Buffer // kept between runs: growing it is not the job
	run := func() error {
		out.Reset()
		return print(&out)
	}
	return contender{
		name: name,
		run:  run,
		answer: func() (any, error) {
			if err := run(); err != nil {
				return nil, err
			}
			var v any
			err := json.Unmarshal(out.Bytes(), &v)
			return v, err
		},
	}
}

func printJSON(w io.Writer, c value.Codec, data []byte) error {
	j := value.NewJSONWriter(w, value.Limits{}, nil, nil)
	if err := j.WriteValue(value.NewScanner(c, data, value.Limits{})); err != nil {
		return err
	}
	return j.Flush()
}

func passing(name string, pass func() (int, error)) contender {
	return contender{
		name:   name,
		run:    func() error { _, err := pass(); return err },
		answer: func() (any, error) { return pass() },
	}
}
