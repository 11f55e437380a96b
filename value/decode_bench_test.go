package value

import (
	"fmt"
	"io"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/tinylib/msgp/msgp"
)

// record is one of those that the benchmarks read and write.
type record struct {
	ID     int64    `spile:"id" cbor:"id"`
	Name   string   `spile:"name" cbor:"name"`
	Email  string   `spile:"email" cbor:"email"`
	City   string   `spile:"city" cbor:"city"`
	Score  float64  `spile:"score" cbor:"score"`
	Active bool     `spile:"active" cbor:"active"`
	Tags   []string `spile:"tags" cbor:"tags"`
	Geo    struct {
		Lat float64 `spile:"lat" cbor:"lat"`
		Lon float64 `spile:"lon" cbor:"lon"`
	} `spile:"geo" cbor:"geo"`
}

var cities = []string{"Athens", "Berlin", "Lisbon", "Oslo", "Paris", "Rome"}

// makeRecords gives n records, about 135 bytes each in either codec.
func makeRecords(n int) []record {
	records := make([]record, n)
	for i := range records {
		h := uint64(i+1) * 0x9e3779b97f4a7c15
		r := &records[i]
		r.ID, r.Name, r.Email = int64(i), fmt.Sprintf("user %d", h>>44), fmt.Sprintf("u%d@example.com", h>>40)
		r.City, r.Active = cities[h>>60%6], h>>50&1 == 0
		r.Score, r.Geo.Lat, r.Geo.Lon = float64(h>>11)/(1<<53), float64(h>>20)/1e12, float64(h>>30)/1e9
		for j := range h >> 62 {
			r.Tags = append(r.Tags, fmt.Sprintf("tag%d", h>>(8*j)&31))
		}
	}
	return records
}

// benchDocument gives the document of n records in both codecs and as Decode gives it.
func benchDocument(b *testing.B, n int) (encoded [CBOR + 1][]byte, decoded any) {
	records := makeRecords(n)
	for c := Msgpack; c <= CBOR; c++ {
		var err error
		if encoded[c], err = Append(nil, c, records); err != nil {
			b.Fatal(err)
		}
	}
	decoded, err := Decode(Msgpack, encoded[Msgpack], Limits{})
	if err != nil {
		b.Fatal(err)
	}
	return encoded, decoded
}

func BenchmarkDecode(b *testing.B) {
	for _, n := range []int{200, 60_000} {
		encoded, _ := benchDocument(b, n)
		for _, bb := range []struct {
			name string
			c    Codec
			f    func(p []byte) error
		}{
			{"msgpack", Msgpack, func(p []byte) error { _, err := Decode(Msgpack, p, Limits{}); return err }},
			{"cbor", CBOR, func(p []byte) error { _, err := Decode(CBOR, p, Limits{}); return err }},
			{"msgpack-into-structs", Msgpack, func(p []byte) error { return Unmarshal(Msgpack, p, Limits{}, new([]record)) }},
			{"cbor-into-structs", CBOR, func(p []byte) error { return Unmarshal(CBOR, p, Limits{}, new([]record)) }},
			{"peer-msgp", Msgpack, func(p []byte) error { _, _, err := msgp.ReadIntfBytes(p); return err }},
			{"peer-fxamacker", CBOR, func(p []byte) error { return cbor.Unmarshal(p, new(any)) }},
			{"peer-fxamacker-into-structs", CBOR, func(p []byte) error { return cbor.Unmarshal(p, new([]record)) }},
		} {
			b.Run(fmt.Sprintf("%s/records=%d", bb.name, n), func(b *testing.B) {
				b.SetBytes(int64(len(encoded[bb.c])))
				b.ReportAllocs()
				for b.Loop() {
					if err := bb.f(encoded[bb.c]); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	encoded, document := benchDocument(b, 200)
	records := makeRecords(200)
	var dst []byte
	for _, bb := range []struct {
		name string
		f    func() (err error)
	}{
		{"msgpack", func() (err error) { dst, err = Append(dst[:0], Msgpack, document); return err }},
		{"cbor", func() (err error) { dst, err = Append(dst[:0], CBOR, document); return err }},
		{"structs", func() (err error) { dst, err = Append(dst[:0], Msgpack, records); return err }},
		{"write", func() error { return Write(io.Discard, Msgpack, document) }},
		{"peer-msgp", func() (err error) { dst, err = msgp.AppendIntf(dst[:0], document); return err }},
		{"peer-fxamacker", func() (err error) { _, err = cbor.Marshal(document); return err }},
		{"peer-fxamacker-structs", func() (err error) { _, err = cbor.Marshal(records); return err }},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(encoded[Msgpack])))
			b.ReportAllocs()
			for b.Loop() {
				if err := bb.f(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
