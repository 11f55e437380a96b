package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/series"
	"github.com/spilehq/spile/tcb"
	"github.com/spilehq/spile/value"
)

func newDemo(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Make a sample of each format, read one piece, show what it cost",
		Long: `Demo makes a sample of each format in a temporary folder, reads one piece out of each, and shows the commands and
their cost receipts. It removes the folder at the end.`,
		Example: "  spile demo",
		Args:    arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.demo(cmd.Context())
		},
	}
}

// sample is a file that demo makes, and what it shows of it.
type sample struct {
	name  string
	about string
	make  func(ctx context.Context, path string) error
	shown [][]string // command lines, with FILE for the path
}

var samples = []sample{{
	name:  "runs.msg",
	about: "a document of 400 runs with 1,000 energies each",
	make:  makeRuns,
	shown: [][]string{
		{"info", "FILE"},
		{"ls", "FILE", "runs/300"},
		{"get", "--stats", "FILE", "runs/300/label"},
		{"get", "--stats", "FILE", "runs/300/energy/500:505"},
	},
}, {
	name:  "items.tcb",
	about: "a table of 20,000 items with 5 columns",
	make:  makeItems,
	shown: [][]string{
		{"info", "FILE"},
		{"ls", "FILE"},
		{"get", "--stats", "FILE", "12345/2"},
		{"get", "--stats", "FILE", "10:15/3"},
	},
}, {
	name:  "hosts",
	about: "a series artifact of 20,000 series in two tables",
	make:  makeHosts,
	shown: [][]string{
		{"info", "FILE"},
		{"ls", "FILE", "part-0/0"},
		{"get", "--stats", "FILE", "1026/7000"},
	},
}}

func (e *env) demo(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "spile-demo-*")
	if err != nil {
		return fault.New(nil, "", "temporary folder").Because(bare(err))
	}
	defer os.RemoveAll(dir)
	for _, s := range samples {
		path := filepath.Join(dir, s.name)
		if err := s.make(ctx, path); err != nil {
			return err
		}
		size, err := sizeOf(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(e.out, "# %s: %s, %d bytes\n", s.name, s.about, size)
		for _, line := range s.shown {
			if err := e.show(ctx, line, s.name, path); err != nil {
				return err
			}
		}
	}
	return nil
}

// sizeOf is the size of a file, or of the files in a folder.
func sizeOf(path string) (n int64, err error) {
	err = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
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

// show runs a command line and prints it with what it says.
func (e *env) show(ctx context.Context, line []string, name, path string) error {
	args := make([]string, len(line))
	for i, arg := range line {
		args[i] = strings.ReplaceAll(arg, "FILE", path)
	}
	var out, errs bytes.Buffer
	status := run(ctx, args, strings.NewReader(""), &out, &errs)
	fmt.Fprintf(e.out, "\n$ spile %s\n", strings.ReplaceAll(strings.Join(line, " "), "FILE", name))
	for _, text := range []string{out.String(), errs.String()} {
		e.out.WriteString(strings.ReplaceAll(text, path, name))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if status != statusDone {
		return fmt.Errorf("%s ended with status %d", line[0], status)
	}
	return e.out.Flush()
}

// makeRuns writes the sample document. Its lists are made while they are written.
func makeRuns(ctx context.Context, path string) error {
	const runs, energies = 400, 1000
	return msglc.Dump(ctx, path, value.OrderedMap{
		{Key: "config", Value: value.OrderedMap{{Key: "method", Value: "dft"}, {Key: "seed", Value: 42}}},
		{Key: "runs", Value: value.Seq{Len: runs, Items: func(yield func(any) bool) {
			for i := range runs {
				run := value.OrderedMap{
					{Key: "label", Value: fmt.Sprintf("run-%03d", i)},
					{Key: "energy", Value: value.Seq{Len: energies, Items: decay(i, energies)}},
				}
				if !yield(run) {
					return
				}
			}
		}}},
	}, nil)
}

// decay gives n numbers that fall towards -1.
func decay(i, n int) iter.Seq[any] {
	return func(yield func(any) bool) {
		for k := range n {
			if !yield(-1 + 1/float64(1+i+k)) {
				return
			}
		}
	}
}

// makeItems writes the sample table.
func makeItems(ctx context.Context, path string) error {
	type item struct {
		ID    int32   `tcb:"1"`
		Label string  `tcb:"2"`
		HP    int32   `tcb:"3"`
		Speed float32 `tcb:"4"`
		Drops []int32 `tcb:"5"`
	}
	materials, kinds := []string{"Iron", "Oak", "Silver", "Bone"}, []string{"Sword", "Shield", "Bow"}
	items := make([]item, 20_000)
	for i := range items {
		items[i] = item{
			ID: int32(100_000 + i), Label: fmt.Sprintf("%s_%s_%d", materials[i%4], kinds[i%3], i/12), HP: int32(50 + i*i%1000),
			Speed: float32(i%40) / 4, Drops: []int32{int32(i % 7), int32(i % 11)}[:i%3],
		}
	}
	file, err := tcb.Marshal(nil, items, nil)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, file, 0o666); err != nil {
		return fault.New(nil, "", "").In(path).Because(bare(err))
	}
	return ctx.Err()
}

// makeHosts writes the sample artifact, and moves it to path: its place in an index store is of no interest here.
func makeHosts(ctx context.Context, path string) error {
	meta := &series.Manifest{
		RegionID: 1024<<32 + 1, Generation: series.UUID{0x6f, 0x1c, 0x1f, 0x5e, 0x3b, 0x0a, 0x4c, 0x52, 0x9d, 0x6e, 0x0a, 0x1b, 0x2c, 0x3d, 0x4e, 0x5f},
		Tags: []series.Tag{{ColumnID: 5, Name: "host"}, {ColumnID: 6, Name: "zone"}, {ColumnID: 7, Name: "device"}},
		Coverage: series.Coverage{
			BucketStart: &series.Timestamp{Value: 1767225600, Unit: "Second"}, BucketEnd: &series.Timestamp{Value: 1767312000, Unit: "Second"},
		},
	}
	root, err := os.MkdirTemp(filepath.Dir(path), "store-*")
	if err != nil {
		return fault.New(nil, "", "temporary folder").Because(bare(err))
	}
	defer os.RemoveAll(root)
	target := series.NewFolderTarget(root, meta.RegionID, meta.Generation)
	w, err := series.NewWriter(ctx, target, meta, &series.WriteOptions{Zstd: true})
	if err != nil {
		return err
	}
	defer w.Abort()
	for i := range 20_000 {
		r := series.Record{ID: series.ID{Table: uint32(1025 + i/10_000), TSID: uint64(i % 10_000)}, RowCount: uint64(60 + i%7), Labels: []series.Label{
			{Name: "host", Value: fmt.Sprintf("web-%04d", i%10_000/4)}, {Name: "zone", Value: fmt.Sprintf("zone-%d", i%3)},
		}}
		if i >= 10_000 {
			r.Labels = append(r.Labels, series.Label{Name: "device", Value: fmt.Sprintf("sd%c", 'a'+i%4)})
		}
		if err := w.Add(r); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.Rename(target.Dir(), path)
}
