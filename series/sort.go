package series

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"slices"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/wire"
	"github.com/spilehq/spile/source"
)

// DefaultSortBytes is the memory of a Sorter that is told nothing else.
const DefaultSortBytes = 256 << 20

const (
	// sortFan is how many runs are merged at once. More would be more open files, and fewer more passes: with the default
	// memory 64 runs are 16 GiB of records in one pass.
	sortFan = 64
	// sortBuffer is what is read of a run at once.
	sortBuffer = 64 << 10
	// sortPage is what memory for records is taken in.
	sortPage = 1 << 20
	// sortEntrySize is what a record takes beside its bytes: an entry of 24 bytes, and as much again while the list of them
	// grows.
	sortEntrySize = 56
)

// Sorter puts records into the order of their identifiers; those with one identifier stay in the order in which they came.
// What does not fit into its memory goes to temporary files, which have no name where the system allows that, so that
// nothing of them is left whatever ends the program. It is not safe for concurrent use.
type Sorter struct {
	ctx    context.Context
	memory int64
	names  map[string]uint64 // of labels
	texts  []string          // the names by number

	pages   [][]byte
	full    int64 // bytes of pages that are taken
	free    [][]byte
	entries []sortEntry
	ordered bool // so far
	runs    []sortRun
	buf     []byte
}

// sortEntry is a record in memory. By its place records that came first are less.
type sortEntry struct {
	ID
	page, at uint32
}

func (a sortEntry) compare(b sortEntry) int {
	return cmp.Or(a.ID.Compare(b.ID), cmp.Compare(a.page, b.page), cmp.Compare(a.at, b.at))
}

// sortRun is a file of sorted records. Runs of a level above 0 were merged of sortFan runs of the level below.
type sortRun struct {
	file  *source.Temporary
	level int
}

// NewSorter returns a sorter that holds about that many bytes in memory; 0: DefaultSortBytes. Close frees it.
func NewSorter(ctx context.Context, memory int64) *Sorter {
	if memory <= 0 {
		memory = DefaultSortBytes
	}
	return &Sorter{ctx: ctx, memory: memory, names: make(map[string]uint64), ordered: true}
}

// Add takes a record, and copies it.
func (s *Sorter) Add(r Record) error {
	b := binary.AppendUvarint(s.buf[:0], r.RowCount)
	b = binary.AppendUvarint(b, uint64(len(r.Labels)))
	for _, l := range r.Labels {
		k, ok := s.names[l.Name]
		if !ok {
			k = uint64(len(s.texts))
			s.names[l.Name] = k
			s.texts = append(s.texts, l.Name)
		}
		b = binary.AppendUvarint(binary.AppendUvarint(b, k), uint64(len(l.Value)))
	}
	for _, l := range r.Labels {
		b = append(b, l.Value...)
	}
	s.buf = b
	head := wire.Uvarint64Size(uint64(len(b)))
	if n := len(s.pages); n == 0 || cap(s.pages[n-1])-len(s.pages[n-1]) < head+len(b) {
		if n > 0 && s.full+int64(len(s.entries))*sortEntrySize+s.pageSize() > s.memory {
			if err := s.spill(); err != nil {
				return err
			}
		}
		s.grow(head + len(b))
	}
	page := &s.pages[len(s.pages)-1]
	e := sortEntry{r.ID, uint32(len(s.pages) - 1), uint32(len(*page))}
	*page = append(binary.AppendUvarint(*page, uint64(len(b))), b...)
	if n := len(s.entries); n > 0 && r.ID.Less(s.entries[n-1].ID) {
		s.ordered = false
	}
	s.entries = append(s.entries, e)
	return nil
}

// pageSize is that of a page for records of usual length: small where the memory is.
func (s *Sorter) pageSize() int64 { return min(sortPage, max(4<<10, s.memory/8)) }

// grow begins a page that has room for n bytes.
func (s *Sorter) grow(n int) {
	size := int(s.pageSize())
	if k := len(s.free); k > 0 && n <= size {
		s.pages, s.free = append(s.pages, s.free[k-1][:0]), s.free[:k-1]
	} else {
		s.pages = append(s.pages, make([]byte, 0, max(n, size)))
	}
	s.full += int64(cap(s.pages[len(s.pages)-1]))
}

// order sorts what is in memory.
func (s *Sorter) order() {
	if !s.ordered {
		slices.SortFunc(s.entries, sortEntry.compare)
		s.ordered = true
	}
}

// spill writes what is in memory as a run.
func (s *Sorter) spill() error {
	s.order()
	err := s.write(0, func(w *bufio.Writer) error {
		m := memoryRun{s: s}
		for m.next() == nil {
			if err := writeSorted(w, m.id(), m.body()); err != nil {
				return err
			}
		}
		return nil
	})
	for _, p := range s.pages {
		if int64(cap(p)) == s.pageSize() {
			s.free = append(s.free, p)
		}
	}
	s.pages, s.full, s.entries = s.pages[:0], 0, s.entries[:0]
	if err != nil {
		return err
	}
	// Runs that follow one another are merged into one in their place, so that what came first stays first.
	for level := 0; ; level++ {
		from := len(s.runs)
		for from > 0 && s.runs[from-1].level == level {
			from--
		}
		if len(s.runs)-from < sortFan {
			return nil
		}
		old := slices.Clone(s.runs[from:])
		s.runs = s.runs[:from]
		m, err := s.merge(old, false)
		if err == nil {
			err = s.write(level+1, func(w *bufio.Writer) error {
				for {
					r, err := m.next()
					if err != nil || r == nil {
						return err
					}
					if err := writeSorted(w, r.id(), r.body()); err != nil {
						return err
					}
				}
			})
		}
		for _, r := range old {
			r.file.Close()
		}
		if err != nil {
			return err
		}
	}
}

// write makes a run.
func (s *Sorter) write(level int, fill func(*bufio.Writer) error) error {
	if err := s.ctx.Err(); err != nil {
		return fault.New(nil, "series", "").Because(err)
	}
	f, err := source.CreateTemporary("")
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 256<<10)
	if err = fill(w); err == nil {
		err = w.Flush()
	}
	if err != nil {
		f.Close()
		return sortFault(err)
	}
	s.runs = append(s.runs, sortRun{f, level})
	return nil
}

func sortFault(err error) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	return fault.New(nil, "series", "a temporary file for sorting").Because(err)
}

func writeSorted(w *bufio.Writer, id ID, body []byte) error {
	head := binary.AppendUvarint(appendID(make([]byte, 0, 22), id), uint64(len(body)))
	w.Write(head)
	_, err := w.Write(body) // an error stays
	return err
}

// sortedRun gives sorted records: behind a call of next without an error there is one, io.EOF says that there is none.
type sortedRun interface {
	next() error
	id() ID
	body() []byte
}

// memoryRun is what a sorter has in memory.
type memoryRun struct {
	s *Sorter
	k int // behind the record
}

func (m *memoryRun) next() error {
	if m.k == len(m.s.entries) {
		return io.EOF
	}
	m.k++
	return nil
}

func (m *memoryRun) id() ID { return m.s.entries[m.k-1].ID }

func (m *memoryRun) body() []byte {
	e := m.s.entries[m.k-1]
	p := m.s.pages[e.page][e.at:]
	size, n := binary.Uvarint(p)
	return p[n : n+int(size)]
}

// fileRun is a run in a file.
type fileRun struct {
	r    *bufio.Reader
	key  ID
	data []byte
}

func (f *fileRun) next() error {
	var head [12]byte
	if _, err := io.ReadFull(f.r, head[:]); err != nil {
		return err
	}
	f.key = parseID(head[:])
	size, err := binary.ReadUvarint(f.r)
	if err != nil {
		return err
	}
	f.data = slices.Grow(f.data[:0], int(size))[:size]
	_, err = io.ReadFull(f.r, f.data)
	return err
}

func (f *fileRun) id() ID       { return f.key }
func (f *fileRun) body() []byte { return f.data }

// merger gives the records of some runs in order. Of equal ones that of the run before comes first.
type merger struct {
	ctx  context.Context
	heap []mergeItem // the least in front
	used bool        // the record of heap[0] was given
	n    int
}

type mergeItem struct {
	run   sortedRun
	key   ID
	order int
}

func (a *mergeItem) less(b *mergeItem) bool {
	c := a.key.Compare(b.key)
	return c < 0 || c == 0 && a.order < b.order
}

// merge begins to merge runs, and what is in memory when withMemory.
func (s *Sorter) merge(runs []sortRun, withMemory bool) (*merger, error) {
	m := &merger{ctx: s.ctx}
	add := func(r sortedRun) error {
		switch err := r.next(); {
		case err == io.EOF:
		case err != nil:
			return sortFault(err)
		default:
			m.heap = append(m.heap, mergeItem{r, r.id(), len(m.heap)})
		}
		return nil
	}
	size := int(min(sortBuffer, max(4<<10, s.memory/sortFan)))
	for _, r := range runs {
		if _, err := r.file.Seek(0, io.SeekStart); err != nil {
			return nil, sortFault(err)
		}
		if err := add(&fileRun{r: bufio.NewReaderSize(r.file, size)}); err != nil {
			return nil, err
		}
	}
	if withMemory {
		s.order()
		if err := add(&memoryRun{s: s}); err != nil {
			return nil, err
		}
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.sink(i)
	}
	return m, nil
}

func (m *merger) sink(i int) {
	h := m.heap
	for {
		least := i
		for _, k := range [2]int{2*i + 1, 2*i + 2} {
			if k < len(h) && h[k].less(&h[least]) {
				least = k
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// next returns the run whose record is the next one, nil at the end.
func (m *merger) next() (sortedRun, error) {
	if m.n++; m.n&0xfff == 0 {
		if err := m.ctx.Err(); err != nil {
			return nil, fault.New(nil, "series", "").Because(err)
		}
	}
	if m.used {
		switch err := m.heap[0].run.next(); {
		case err == io.EOF:
			last := len(m.heap) - 1
			m.heap[0] = m.heap[last]
			m.heap = m.heap[:last]
		case err != nil:
			return nil, sortFault(err)
		default:
			m.heap[0].key = m.heap[0].run.id()
		}
		m.sink(0)
		m.used = false
	}
	if len(m.heap) == 0 {
		return nil, nil
	}
	m.used = true
	return m.heap[0].run, nil
}

// Sorted gives the records in order, once. The labels of a record are good until the next one.
func (s *Sorter) Sorted() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		m, err := s.merge(s.runs, true)
		if err != nil {
			yield(Record{}, err)
			return
		}
		var labels []Label
		for {
			run, err := m.next()
			if err != nil {
				yield(Record{}, err)
				return
			}
			if run == nil {
				return
			}
			r := s.record(run.id(), run.body(), labels[:0])
			labels = r.Labels
			if !yield(r, nil) {
				return
			}
		}
	}
}

// record takes a record out of its bytes. Its values share memory.
func (s *Sorter) record(id ID, p []byte, labels []Label) Record {
	next := func() uint64 {
		v, n := binary.Uvarint(p)
		p = p[n:]
		return v
	}
	r := Record{ID: id, RowCount: next()}
	n := int(next())
	head := p
	for range 2 * n {
		next()
	}
	text := string(p)
	p = head
	for range n {
		name, size := s.texts[next()], next()
		labels = append(labels, Label{name, text[:size]})
		text = text[size:]
	}
	r.Labels = labels
	return r
}

// Close frees memory and files.
func (s *Sorter) Close() {
	for _, r := range s.runs {
		r.file.Close()
	}
	*s = Sorter{}
}
