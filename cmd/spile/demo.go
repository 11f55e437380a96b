package main

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
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
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(e.out, "# %s: %s, %d bytes\n", s.name, s.about, info.Size())
		for _, line := range s.shown {
			if err := e.show(ctx, line, s.name, path); err != nil {
				return err
			}
		}
	}
	return nil
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
