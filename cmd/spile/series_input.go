package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/spilehq/spile/adapters/promtsdb"
	"github.com/spilehq/spile/adapters/seriescsv"
	"github.com/spilehq/spile/adapters/seriesjson"
	"github.com/spilehq/spile/adapters/seriesparquet"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/series"
	"github.com/spilehq/spile/source"
)

// inputFormat is a format that series are built from.
type inputFormat uint8

const (
	anyInput inputFormat = iota
	inputJSON
	inputCSV
	inputParquet
	inputTSDB
)

// inputNames are the names of the formats from inputJSON on.
var inputNames = []string{"jsonl", "csv", "parquet", "tsdb"}

// seriesInput is what series are built from.
type seriesInput struct {
	*env
	format inputFormat
	name   string
	obj    source.Object   // nil for a block
	block  *promtsdb.Block // of Prometheus
	tables map[string]uint32
}

// openSeriesInput opens an input, and finds its format from the content.
func (e *env) openSeriesInput(ctx context.Context, arg string, from inputFormat) (*seriesInput, error) {
	if dir, ok := folder(arg); ok {
		if from != anyInput && from != inputTSDB {
			return nil, fault.New(fault.Invalid, "", "is a folder, and --from %s is of files", inputNames[from-1]).In(dir)
		}
		return e.openBlock(ctx, dir)
	}
	obj, err := e.object(ctx, arg, &sourceFlags{})
	if err != nil {
		return nil, err
	}
	in := &seriesInput{env: e, name: obj.Name(), obj: obj, format: from}
	if from == anyInput {
		in.format, err = inputFormatOf(ctx, obj)
	} else if from == inputTSDB {
		err = fault.New(fault.Invalid, "", "is a file, and a block of Prometheus is a folder")
	}
	if err != nil {
		obj.Close()
		return nil, named(err, obj.Name())
	}
	return in, nil
}

// inputFormatOf finds the format of a file: Parquet by its magic, JSON Lines by the brace they begin with, CSV else.
func inputFormatOf(ctx context.Context, obj source.Object) (inputFormat, error) {
	head, err := headOf(ctx, obj, 0, 4<<10)
	if err != nil {
		return anyInput, err
	}
	wide := bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff"))
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	switch {
	case bytes.HasPrefix(head, []byte("PAR1")) || bytes.HasPrefix(head, []byte("PARE")):
		return inputParquet, nil
	case bytes.HasPrefix(head, []byte("GTSERIES")):
		return anyInput, fault.New(fault.Invalid, "", "is a part of an artifact; spile cat prints its series")
	case foreign(head) != "":
		return anyInput, fault.New(fault.Invalid, "", "is none of JSON Lines, CSV and Parquet: %s", foreign(head))
	case len(text) == 0 || text[0] == '{' || text[0] == '[':
		return inputJSON, nil
	case wide || isText(head):
		return inputCSV, nil
	}
	return anyInput, fault.New(fault.Invalid, "", "is none of JSON Lines, CSV and Parquet: it is no text")
}

func (in *seriesInput) Close() error {
	if in.block != nil {
		return in.block.Close()
	}
	return in.obj.Close()
}

func (in *seriesInput) reader(ctx context.Context) io.Reader {
	return source.NewReader(ctx, in.obj, 0, in.obj.Size(), 1<<20)
}

// note says what is left out of an input.
func (in *seriesInput) note(text string) { in.say("%s: note: %s", in.name, text) }

// records gives the series of the input, whose labels must be tags.
func (in *seriesInput) records(ctx context.Context, tags []series.Tag) iter.Seq2[series.Record, error] {
	switch in.format {
	case inputJSON:
		return seriesjson.Records(ctx, in.reader(ctx), in.name, tags)
	case inputCSV:
		return seriescsv.Records(ctx, in.reader(ctx), in.name, tags)
	case inputParquet:
		return seriesparquet.Records(ctx, source.AsReaderAt(ctx, in.obj), in.obj.Size(), in.name, tags, &seriesparquet.Options{Note: in.note})
	}
	return in.block.Records(ctx, &promtsdb.Options{Tables: in.tables, Tags: tags, Note: in.note})
}

// labels are the names of the labels that the input has.
func (in *seriesInput) labels(ctx context.Context) (names []string, err error) {
	switch in.format {
	case inputJSON:
		return seriesjson.Labels(ctx, in.reader(ctx), in.name)
	case inputCSV:
		return seriescsv.Labels(in.reader(ctx), in.name)
	case inputParquet:
		return seriesparquet.Labels(source.AsReaderAt(ctx, in.obj), in.obj.Size(), in.name)
	}
	names, _, err = in.block.Names(ctx)
	return names, err
}

// unit is what messages call a record of the input.
func (in *seriesInput) unit() string {
	switch in.format {
	case inputJSON:
		return "line"
	case inputParquet:
		return "row"
	}
	return "record"
}

// propose makes the meta.json of an input, for review: its labels as tags, and a generation that follows from its bytes.
func (in *seriesInput) propose(ctx context.Context) (*series.Manifest, error) {
	names, err := in.labels(ctx)
	if err != nil {
		return nil, err
	}
	m := &series.Manifest{RegionID: 1}
	for i, name := range names {
		m.Tags = append(m.Tags, series.Tag{ColumnID: uint32(i + 1), Name: name})
	}
	hash := sha256.New()
	unknown := "the region is 1"
	if in.block != nil {
		b := in.block.Meta()
		hash.Write(b.Text)
		m.Coverage.BucketStart = &series.Timestamp{Value: b.MinTime, Unit: "Millisecond"}
		m.Coverage.BucketEnd = &series.Timestamp{Value: b.MaxTime, Unit: "Millisecond"}
	} else {
		if _, err := io.Copy(hash, in.reader(ctx)); err != nil {
			return nil, err
		}
		unknown = "the region is 1 and the bucket empty"
	}
	id := hash.Sum(nil)[:16]
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // a UUID of version 8: one whose bytes are the maker's business
	m.Generation = series.UUID(id)
	m.Coverage.IndexUUID = m.Generation
	in.say("%s: %s: what the input does not tell, set before you build", in.name, unknown)
	return m, nil
}

// openBlock opens a folder that must be a block of Prometheus.
func (e *env) openBlock(ctx context.Context, dir string) (*seriesInput, error) {
	has := func(name string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return err == nil && !info.IsDir()
	}
	if !has(promtsdb.IndexName) || !has(promtsdb.MetaName) {
		f := fault.New(fault.Invalid, "", "is a folder, and no block of Prometheus, which has the files %s and %s", promtsdb.IndexName, promtsdb.MetaName)
		if below, _ := filepath.Glob(filepath.Join(globText(dir), "*", promtsdb.IndexName)); len(below) > 0 {
			f = fault.New(fault.Invalid, "", "is a folder of blocks; name one, as %s", filepath.Dir(below[0]))
		} else if has(series.ManifestName) {
			f = fault.New(fault.Invalid, "", "is a series artifact already; spile series merge makes one of several")
		}
		return nil, f.In(dir)
	}
	block, err := promtsdb.Open(ctx, func(ctx context.Context, name string) (source.Object, error) {
		obj, err := openPath(ctx, filepath.Join(dir, filepath.FromSlash(name)), &sourceFlags{})
		if err != nil {
			return nil, err
		}
		return e.metered(obj), nil
	})
	if err != nil {
		return nil, err
	}
	in := &seriesInput{env: e, format: inputTSDB, name: dir, block: block}
	if deleted, err := block.Tombstones(ctx); err != nil {
		block.Close()
		return nil, err
	} else if deleted {
		in.note("it has deletions (tombstones), which are not applied")
	}
	return in, nil
}
