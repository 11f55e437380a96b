package main

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spilehq/spile/adapters/seriesparquet"
	"github.com/spilehq/spile/series"
	"github.com/spilehq/spile/source"
)

// seriesFiles are the files of a set, each in its own form.
type seriesFiles struct {
	artifact string // folder, with zstd
	plain    string // folder, without compression
	parquet  string
	index    string // of a block of Prometheus
	lookups  string // folder, without compression and with what the guide recommends for lookups
}

// forLookups is what the guide of series recommends for an artifact in which single series are looked up.
var forLookups = series.WriteOptions{BlockSeries: 512, PageBytes: 8 << 10}

const forLookupsText = "blocks of 512, pages of 8 KiB"

// files writes the files of a set below dir.
func (s *seriesSet) files(dir string) (*seriesFiles, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	f := &seriesFiles{parquet: filepath.Join(dir, "series.parquet"), index: filepath.Join(dir, "index")}
	for _, a := range []struct {
		folder *string
		name   string
		o      series.WriteOptions
	}{
		{&f.artifact, "zstd-true", series.WriteOptions{Zstd: true}}, {&f.plain, "zstd-false", series.WriteOptions{}},
		{&f.lookups, "lookups", forLookups},
	} {
		target := series.NewFolderTarget(filepath.Join(dir, a.name), 1<<32, series.UUID{})
		*a.folder = target.Dir()
		if err := s.build(target, &a.o); err != nil {
			return nil, err
		}
	}
	if err := s.writeParquet(f.parquet); err != nil {
		return nil, err
	}
	return f, s.writeIndex(f.index)
}

// build writes an artifact.
func (s *seriesSet) build(target series.Target, o *series.WriteOptions) error {
	w, err := series.NewWriter(context.Background(), target, s.meta(), o)
	if err != nil {
		return err
	}
	defer w.Abort()
	for r := range s.records() {
		if err := w.Add(r); err != nil {
			return err
		}
	}
	return w.Close()
}

func (s *seriesSet) writeParquet(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	if err := seriesparquet.Write(context.Background(), w, s.labels, s.records(), nil); err != nil {
		return err
	}
	return errors.Join(w.Flush(), f.Close())
}

// sizeOf is the size of a file, or of the files below a folder.
func sizeOf(path string) (int64, error) {
	var n int64
	err := filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}

// nowhere is a target that counts bytes.
type nowhere struct{ bytes int64 }

func (t *nowhere) Create(context.Context, string) (series.Output, error) {
	return countedOutput{t}, nil
}
func (t *nowhere) Discard() error { return nil }

type countedOutput struct{ t *nowhere }

func (o countedOutput) Write(p []byte) (int, error) {
	o.t.bytes += int64(len(p))
	return len(p), nil
}
func (o countedOutput) Commit() error { return nil }
func (o countedOutput) Abort()        {}

// openArtifact opens an artifact whose reads are counted.
func openArtifact(dir string, o *series.Options, meter *source.Meter) (*series.Artifact, error) {
	return openObjects(series.Folder(dir), o, meter)
}

// openMapped is openArtifact of files that are mapped.
func openMapped(dir string, o *series.Options, meter *source.Meter) (*series.Artifact, error) {
	return openObjects(func(_ context.Context, name string) (source.Object, error) {
		return source.OpenMmap(filepath.Join(dir, name))
	}, o, meter)
}

func openObjects(open series.Opener, o *series.Options, meter *source.Meter) (*series.Artifact, error) {
	return series.Open(context.Background(), func(ctx context.Context, name string) (source.Object, error) {
		obj, err := open(ctx, name)
		if err != nil || meter == nil {
			return obj, err
		}
		return meter.Object(obj), nil
	}, o)
}
