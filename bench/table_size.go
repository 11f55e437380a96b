package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"google.golang.org/protobuf/proto"

	"github.com/spilehq/spile/tcb"
)

// tableFormat is a form of a table as a file.
type tableFormat struct {
	name   string
	encode func(t *gameTable) ([]byte, error)
	decode func(s *shape, p []byte) (any, error)

	// packed is encode with zstd, for a format that has it inside; else zstd goes over the file.
	packed func(t *gameTable) ([]byte, error)
}

var tableFormats = []tableFormat{
	{
		name:   "Spile",
		encode: (*gameTable).tcb,
		decode: func(s *shape, p []byte) (any, error) {
			t, err := openTable(p)
			if err != nil {
				return nil, err
			}
			return s.load(t)
		},
	},
	{
		name:   "JSON, indented",
		encode: func(t *gameTable) ([]byte, error) { return json.MarshalIndent(t.rows, "", "  ") },
		decode: decodeJSONRows,
	},
	{name: "JSON, compact", encode: (*gameTable).json, decode: decodeJSONRows},
	{
		name:   "MessagePack",
		encode: func(t *gameTable) ([]byte, error) { return t.shape.msgpack(t.rows) },
		decode: func(s *shape, p []byte) (any, error) { return s.readMsgpack(p) },
	},
	{
		name:   "Protocol Buffers",
		encode: (*gameTable).protobuf,
		decode: func(s *shape, p []byte) (any, error) {
			m := s.message()
			err := proto.Unmarshal(p, m)
			return s.rowsOf(m), err
		},
	},
	{
		name:   "FlatBuffers",
		encode: func(t *gameTable) ([]byte, error) { return t.shape.flatbuffers(t.rows), nil },
		decode: func(s *shape, p []byte) (any, error) { return s.readFlatbufs(p), nil },
	},
	{
		name: "Parquet",
		encode: func(t *gameTable) ([]byte, error) {
			var b bytes.Buffer
			err := t.shape.parquet(&b, t.rows, &parquet.Uncompressed)
			return b.Bytes(), err
		},
		decode: func(s *shape, p []byte) (any, error) { return s.readParquet(p) },
		packed: func(t *gameTable) ([]byte, error) {
			var b bytes.Buffer
			err := t.shape.parquet(&b, t.rows, &parquet.Zstd)
			return b.Bytes(), err
		},
	},
}

func decodeJSONRows(s *shape, p []byte) (any, error) {
	rows := s.newRows()
	err := json.Unmarshal(p, rows)
	return reflect.ValueOf(rows).Elem().Interface(), err
}

// fileSize is what tables take in a format.
type fileSize struct{ plain, packed int }

func measureSizes(s *setup) ([]row, error) {
	var rows []row
	for _, of := range s.tableInputs() {
		progress("  %s", of.name)
		r, err := sizeRows(of.name, of.make())
		if err != nil {
			return nil, err
		}
		rows = append(rows, r...)
	}
	return rows, nil
}

// sizeRows are what tables take in all formats, one file a table.
func sizeRows(name string, tables []gameTable) ([]row, error) {
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		return nil, err
	}
	defer encoder.Close()
	sizes := make([]fileSize, len(tableFormats))
	for i := range tables {
		for k := range tableFormats {
			size, err := tableFormats[k].size(encoder, &tables[i])
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", tables[i].name, tableFormats[k].name, err)
			}
			sizes[k].plain += size.plain
			sizes[k].packed += size.packed
		}
	}
	var plain, packed []row
	of := func(job string, ours, theirs int, peer string) row {
		return row{
			Section: "sizes", Job: job, Ours: figure{Value: float64(ours), Unit: memory}, Peer: peer,
			Theirs: &figure{Value: float64(theirs), Unit: memory}, Ratio: float64(theirs) / float64(ours),
		}
	}
	for k, f := range tableFormats[1:] {
		plain = append(plain, of(name, sizes[0].plain, sizes[k+1].plain, f.name))
		packed = append(packed, of(name+", with zstd", sizes[0].packed, sizes[k+1].packed, f.name))
	}
	return append(plain, packed...), nil
}

// size encodes a table, and makes sure that all of it can be had back.
func (f *tableFormat) size(encoder *zstd.Encoder, t *gameTable) (fileSize, error) {
	p, err := f.encode(t)
	if err != nil {
		return fileSize{}, err
	}
	if err := f.holds(t, p); err != nil {
		return fileSize{}, err
	}
	size := fileSize{plain: len(p)}
	if f.packed == nil {
		size.packed = len(encoder.EncodeAll(p, nil))
		return size, nil
	}
	if p, err = f.packed(t); err != nil {
		return fileSize{}, err
	}
	size.packed = len(p)
	return size, f.holds(t, p)
}

func (f *tableFormat) holds(t *gameTable, p []byte) error {
	rows, err := f.decode(t.shape, p)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(rows, t.rows) {
		return fmt.Errorf("the file does not hold the rows of the table")
	}
	return nil
}

// decodedSize is what the values of columns take in memory, the text of strings aside.
func decodedSize(columns []*tcb.Column) int64 {
	var n int64
	for _, c := range columns {
		v := valuesOf(c)
		n += int64(v.Len())*int64(v.Type().Elem().Size()) + int64(len(c.Present)+len(c.ElementPresent)+4*len(c.Offsets))
	}
	return n
}
