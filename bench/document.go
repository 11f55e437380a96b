package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"

	"github.com/fxamacker/cbor/v2"
	"github.com/vmihailenco/msgpack/v5"
)

var words = []string{"alpha", "bravo", "charlie delta", "échantillon", "echo/foxtrot", "golf \"quoted\"", "hôtel", "india"}

// recordSource gives the records of the mixed document, the same ones in every run.
type recordSource struct {
	random *rand.Rand
	next   int64
}

func newRecordSource() *recordSource {
	return &recordSource{random: rand.New(rand.NewPCG(1, 2))}
}

func (s *recordSource) record() record {
	r := s.random
	rec := record{
		ID:     s.next,
		Name:   words[r.IntN(len(words))] + fmt.Sprint(r.IntN(1000)),
		Host:   fmt.Sprintf("web-%d.example.com", r.IntN(64)),
		Active: r.IntN(2) == 0,
		// A full-length fraction and a short one: they cost a text differently, and a binary encoding the same.
		Score:   r.Float64() * 100,
		Ratio:   float64(r.IntN(1000)) / 1000,
		Count:   r.Int64N(100_000),
		Delta:   r.Int64N(1<<30) - 1<<29,
		Tags:    []string{words[r.IntN(len(words))], words[r.IntN(len(words))], fmt.Sprint("t", r.IntN(100))},
		Samples: []int64{r.Int64N(10), r.Int64N(1000), r.Int64N(100_000), -r.Int64N(100), r.Int64N(50)},
		Pos:     position{X: float64(r.IntN(100_000)) / 100, Y: float64(r.IntN(100_000)) / 100, Z: r.Int64N(256)},
	}
	if r.IntN(4) == 0 {
		note := "checked by " + words[r.IntN(len(words))]
		rec.Note = &note
	}
	s.next++
	return rec
}

// document is the mixed document in the forms that jobs start from. The encoded forms are made by the peers' encoders,
// so that nothing here is shaped by ours.
type document struct {
	records records
	msgpack []byte
	narrow  []byte // the same in MessagePack with 8 pairs in each record
	cbor    []byte
	json    []byte
}

// newDocument makes a mixed document of at least size bytes of MessagePack.
func newDocument(size int) (*document, error) {
	d := new(document)
	source := newRecordSource()
	for n := 0; n < size; {
		r := source.record()
		d.records = append(d.records, r)
		n += encodedRecord(&r)
	}
	var err error
	if d.msgpack, err = d.records.MarshalMsg(nil); err != nil {
		return nil, err
	}
	if d.narrow, err = d.encodeNarrow(); err != nil {
		return nil, err
	}
	if d.cbor, err = cbor.Marshal(d.records); err != nil {
		return nil, err
	}
	d.json, err = json.Marshal(d.records)
	return d, err
}

// encodeNarrow encodes the records with 8 pairs each.
func (d *document) encodeNarrow() ([]byte, error) {
	list := make([]narrowRecord, len(d.records))
	for i, r := range d.records {
		list[i] = narrowRecord{r.ID, r.Name, r.Host, r.Active, r.Score, r.Count, r.Tags, r.Pos}
	}
	var b bytes.Buffer
	enc := msgpack.NewEncoder(&b)
	enc.UseCompactInts(true)
	err := enc.Encode(list)
	return b.Bytes(), err
}

func encodedRecord(r *record) int {
	b, err := r.MarshalMsg(nil)
	if err != nil {
		panic(err) // a record has no kind that MessagePack lacks
	}
	return len(b)
}

// maps returns the document as what a decoder gives that knows no types: []any of map[string]any.
func (d *document) maps() []any {
	list := make([]any, len(d.records))
	for i, r := range d.records {
		var note any
		if r.Note != nil {
			note = *r.Note
		}
		tags := make([]any, len(r.Tags))
		for k, t := range r.Tags {
			tags[k] = t
		}
		samples := make([]any, len(r.Samples))
		for k, s := range r.Samples {
			samples[k] = s
		}
		list[i] = map[string]any{
			"id": r.ID, "name": r.Name, "host": r.Host, "active": r.Active, "score": r.Score, "ratio": r.Ratio,
			"count": r.Count, "delta": r.Delta, "tags": tags, "samples": samples,
			"pos": map[string]any{"x": r.Pos.X, "y": r.Pos.Y, "z": r.Pos.Z}, "note": note,
		}
	}
	return list
}

// plain brings a decoded value into the form that answers are compared in. Decoders differ in the integer types they
// give, which says nothing about what they read: integers become int64 where that holds them.
func plain(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
		return v
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
		return v
	case map[any]any:
		m := make(map[string]any, len(v))
		for k, x := range v {
			s, ok := k.(string)
			if !ok {
				return v
			}
			m[s] = plain(x)
		}
		return m
	case int8:
		return int64(v)
	case int16:
		return int64(v)
	case int32:
		return int64(v)
	case int:
		return int64(v)
	case uint8:
		return int64(v)
	case uint16:
		return int64(v)
	case uint32:
		return int64(v)
	case uint:
		return plain(uint64(v))
	case uint64:
		if int64(v) >= 0 {
			return int64(v)
		}
		return new(big.Int).SetUint64(v)
	case float32:
		return float64(v)
	}
	return v
}

// numbers turns the integers of a plain value into floats, for jobs with a contender that passes through JSON, where
// the two are one.
func numbers(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	case int64:
		return float64(v)
	}
	return v
}
