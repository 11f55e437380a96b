package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
)

// jsonShape is a shape of a long JSON file: what a packer may be tempted to hold in memory differs between them.
type jsonShape struct {
	name, file string
	item       func() func(dst []byte) []byte // makes a source of items, which appends the next one
}

var jsonShapes = []jsonShape{
	{"many small records", "records-%d.json", func() func([]byte) []byte {
		s := newRecordSource()
		return func(dst []byte) []byte {
			r := s.record()
			text, err := json.Marshal(&r)
			if err != nil {
				panic(err) // a record has no kind that JSON lacks
			}
			return append(dst, text...)
		}
	}},
	{"one array of numbers", "numbers-%d.json", func() func([]byte) []byte {
		r := rand.New(rand.NewPCG(6, 7))
		return func(dst []byte) []byte { return strconv.AppendFloat(dst, r.Float64()*1000, 'f', 6, 64) }
	}},
}

// make makes a JSON file of about the size, and returns the number of its items.
func (j *jsonShape) make(path string, size int64) (items int64, err error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	next, text := j.item(), []byte(nil)
	for written := int64(0); written < size; items++ {
		text = append(text[:0], ",\n"...)
		if items == 0 {
			text[0] = '['
		}
		text = next(text)
		w.Write(text)
		written += int64(len(text))
	}
	w.WriteString("]\n")
	return items, errors.Join(w.Flush(), f.Close())
}

// measureMemory packs long JSON files with the command line and takes the peak of its memory.
func measureMemory(s *setup) ([]row, error) {
	spile, err := s.spile()
	if err != nil {
		return nil, err
	}
	var rows []row
	for i := range jsonShapes {
		r, err := s.packOnce(spile, &jsonShapes[i])
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func (s *setup) packOnce(spile string, shape *jsonShape) (row, error) {
	in := filepath.Join(s.dir, fmt.Sprintf(shape.file, s.pack))
	out := filepath.Join(s.dir, "packed.msg")
	defer remove(in)
	defer remove(out)
	progress("  %s: making %s", shape.name, in)
	items, err := shape.make(in, int64(s.pack))
	if err != nil {
		return row{}, err
	}
	progress("  %s: packing", shape.name)
	start := time.Now()
	peak, err := peakMemory(spile, "pack", in, "-o", out)
	if err != nil {
		return row{}, err
	}
	took := time.Since(start).Seconds()
	if err := holds(out, items); err != nil {
		return row{}, err
	}
	r := row{
		Section: "memory", Job: fmt.Sprintf("peak memory of spile pack, %s of JSON, %s", bytesText(float64(s.pack)), shape.name),
		Ours: figure{Value: float64(peak), Unit: memory},
		Note: fmt.Sprintf("%s, %s/s", duration(took), bytesText(float64(s.pack)/took)),
	}
	r.atMost(float64(peak), 256<<20, "256 MiB")
	return r, nil
}

// remove removes a file that is too long to be kept.
func remove(path string) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		progress("%v", err)
	}
}

// holds makes sure that a packed file has all items.
func holds(path string, items int64) error {
	ctx := context.Background()
	obj, err := source.OpenFile(path)
	if err != nil {
		return err
	}
	r, err := msglc.Open(ctx, obj, nil)
	if err != nil {
		obj.Close()
		return err
	}
	defer r.Close()
	n, err := r.Root().Len(ctx)
	if err == nil && n != items {
		err = fmt.Errorf("%s has %d items, not %d", path, n, items)
	}
	if err != nil {
		return err
	}
	last, err := r.Root().Index(ctx, -1)
	if err != nil {
		return err
	}
	_, err = last.Value(ctx)
	return err
}
