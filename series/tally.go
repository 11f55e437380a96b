package series

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

const (
	// tallyFan is how many files of counts there are at most; more are made one.
	tallyFan = 16
	// tallyEntrySize is what a value takes beside its bytes: a string and a number in a map that is half full.
	tallyEntrySize = 64
)

// tally counts the values of labels. What does not fit into its memory goes to temporary files.
type tally struct {
	ctx    context.Context
	memory int64
	counts []map[string]uint64 // by label
	held   int64
	runs   []*source.Temporary // sorted by label, then by value
}

// add counts a value n times more.
func (t *tally) add(label int, value string, n uint64) error {
	for label >= len(t.counts) {
		t.counts = append(t.counts, make(map[string]uint64))
	}
	m := t.counts[label]
	if old, ok := m[value]; ok {
		m[value] = old + n
		return nil
	}
	m[strings.Clone(value)] = n // the value alone, which does not keep the text of a dictionary
	if t.held += int64(len(value)) + tallyEntrySize; t.held > t.memory {
		return t.spill()
	}
	return nil
}

// inMemory gives what is not in files, in order.
func (t *tally) inMemory(give func(label int, value string, n uint64) error) error {
	for label, m := range t.counts {
		for _, value := range slices.Sorted(maps.Keys(m)) {
			if err := give(label, value, m[value]); err != nil {
				return err
			}
		}
	}
	return nil
}

// spill writes what is in memory to a file.
func (t *tally) spill() error {
	if err := t.write(t.inMemory); err != nil {
		return err
	}
	for _, m := range t.counts {
		clear(m)
	}
	t.held = 0
	if len(t.runs) < tallyFan {
		return nil
	}
	old := t.runs
	t.runs = nil
	err := t.write(func(give func(int, string, uint64) error) error { return mergeRuns(t.ctx, old, give) })
	for _, r := range old {
		r.Close()
	}
	return err
}

// write makes a file of sorted counts.
func (t *tally) write(each func(func(int, string, uint64) error) error) error {
	if err := t.ctx.Err(); err != nil {
		return fault.New(nil, "series", "").Because(err)
	}
	f, err := source.CreateTemporary("")
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 256<<10)
	var head []byte
	err = each(func(label int, value string, n uint64) error {
		head = binary.AppendUvarint(head[:0], uint64(label))
		head = binary.AppendUvarint(binary.AppendUvarint(head, n), uint64(len(value)))
		w.Write(head)
		_, err := w.WriteString(value) // an error stays
		return err
	})
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		f.Close()
		return tallyFault(err)
	}
	t.runs = append(t.runs, f)
	return nil
}

func tallyFault(err error) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	return fault.New(nil, "series", "a temporary file of values").Because(err)
}

// each gives every value once, by label and then in the order of bytes, and how often it was counted.
func (t *tally) each(give func(label int, value string, n uint64) error) error {
	if len(t.runs) == 0 {
		return t.inMemory(give)
	}
	if t.held > 0 {
		if err := t.spill(); err != nil {
			return err
		}
	}
	return mergeRuns(t.ctx, t.runs, give)
}

// close frees the files and the memory.
func (t *tally) close() {
	for _, r := range t.runs {
		r.Close()
	}
	t.runs, t.counts, t.held = nil, nil, 0
}

// tallyRun reads a file of counts.
type tallyRun struct {
	r     *bufio.Reader
	label uint64
	n     uint64
	value string
}

// next reads the next value; io.EOF says that there is none.
func (r *tallyRun) next() (err error) {
	if r.label, err = binary.ReadUvarint(r.r); err != nil {
		return err
	}
	if r.n, err = binary.ReadUvarint(r.r); err != nil {
		return err
	}
	size, err := binary.ReadUvarint(r.r)
	if err != nil {
		return err
	}
	value := make([]byte, size) // as it was written, and nobody else can write there
	_, err = io.ReadFull(r.r, value)
	r.value = string(value)
	return err
}

func (r *tallyRun) compare(s *tallyRun) int {
	if r.label != s.label {
		return int(r.label) - int(s.label)
	}
	return strings.Compare(r.value, s.value)
}

// mergeRuns gives the values of some files in order, each once.
func mergeRuns(ctx context.Context, files []*source.Temporary, give func(label int, value string, n uint64) error) error {
	var runs []*tallyRun
	for _, f := range files {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return tallyFault(err)
		}
		r := &tallyRun{r: bufio.NewReaderSize(f, 64<<10)}
		switch err := r.next(); {
		case err == nil:
			runs = append(runs, r)
		case err != io.EOF:
			return tallyFault(err)
		}
	}
	for given := 0; len(runs) > 0; given++ {
		if given&0xfff == 0 && ctx.Err() != nil {
			return fault.New(nil, "series", "").Because(ctx.Err())
		}
		least := *slices.MinFunc(runs, (*tallyRun).compare)
		sum := uint64(0)
		for i := 0; i < len(runs); {
			if runs[i].compare(&least) != 0 {
				i++
				continue
			}
			sum += runs[i].n
			switch err := runs[i].next(); {
			case err == io.EOF:
				runs = slices.Delete(runs, i, i+1)
				continue
			case err != nil:
				return tallyFault(err)
			}
			i++
		}
		if err := give(int(least.label), least.value, sum); err != nil {
			return err
		}
	}
	return nil
}
