// Package parquetfile holds what the writers of Parquet files have in common: the form of the schema, and how a file is
// written.
package parquetfile

import (
	"io"
	"reflect"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
)

const (
	// RowGroupBytes bounds a row group, before encoding and compression: a writer holds one of them, encoded.
	RowGroupBytes = 128 << 20
	// BatchRows and BatchBytes bound what is handed to the encoder at once, so that pages keep near their size of 256 KiB.
	BatchRows  = 1024
	BatchBytes = 64 << 10

	// dictionaryBytes is the size from which on a dictionary of strings is given up, and strings are written one by one:
	// the limit of other writers.
	dictionaryBytes = 1 << 20
)

// Column is a column of a file.
type Column struct {
	Name string
	Node parquet.Node
}

// NewWriter begins a file with some columns. Metadata are keys and values in turn.
func NewWriter(w io.Writer, columns []Column, codec compress.Codec, metadata ...string) *parquet.GenericWriter[any] {
	options := []parquet.WriterOption{
		parquet.NewSchema("spile", newRoot(columns)),
		parquet.Compression(codec),
		// Pages of version 1 are what other writers make unless they are told not to.
		parquet.DataPageVersion(1),
		parquet.DictionaryMaxBytes(dictionaryBytes),
		// The library would write its version, as far as the program knows it.
		parquet.CreatedBy("spile", "1", "parquet-go"),
	}
	for i := 0; i+1 < len(metadata); i += 2 {
		options = append(options, parquet.KeyValueMetadata(metadata[i], metadata[i+1]))
	}
	return parquet.NewGenericWriter[any](w, options...)
}

// root is the schema as parquet-go wants it: a group whose fields keep their order, which those of [parquet.Group] do not.
type root struct {
	parquet.Group
	fields []parquet.Field
}

func newRoot(columns []Column) *root {
	r := &root{Group: make(parquet.Group, len(columns)), fields: make([]parquet.Field, len(columns))}
	at := make(map[string]int, len(columns))
	for i, c := range columns {
		r.Group[c.Name] = c.Node
		at[c.Name] = i
	}
	for _, f := range r.Group.Fields() {
		r.fields[at[f.Name()]] = f
	}
	return r
}

func (r *root) Fields() []parquet.Field { return r.fields }

// GoType would make a struct of the names, of which not all are names of Go; nothing asks for the rows as Go values.
func (r *root) GoType() reflect.Type { return reflect.TypeFor[struct{}]() }
