package tcb

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// The first read takes as much as a request is worth at the source, within these bounds: the descriptors of 250 columns fit
// into the lower one, those of 4,000 into the upper one, and all of many tables; then there is no other request.
const (
	minFirstRead = 4 << 10
	maxFirstRead = 64 << 10
)

// Options are the options of a reader. Nil and the zero value mean the defaults.
type Options struct {
	// Keys decrypt the file and check its MAC. A file without MAC is refused when there is a MAC key; one that is
	// encrypted, when there is no encryption key.
	Keys Keys
	// SkipMAC leaves the MAC unchecked although there is a key for it.
	SkipMAC bool
	// StrictUTF8 refuses strings that are no UTF-8; without it their bytes are handed out as they are.
	StrictUTF8 bool
	Limits     Limits
}

// Protection says what protects a file.
type Protection struct {
	Encrypted bool // the bytes in the source are encrypted
	Signed    bool // there is a MAC
	Verified  bool // and it was checked
}

// Table is an opened file. It is safe for concurrent use.
type Table struct {
	obj    source.Object
	opts   Options
	limits Limits
	head   []byte // the start of the file, opened; all of it when whole
	whole  bool
	stored []byte // the header as it is stored
	seal   Protection
	dir    *directory
	tags   map[int32]int // tag -> column
}

// Open reads the directory of a table. It makes one request for most files, and never reads a block that is not asked
// for; but a file that is encrypted, or whose MAC is to be checked, is read whole. The table keeps obj, and closes it
// with [Table.Close]; after an error obj stays open.
//
// A fault of the file has the class that docs/format/tcb.md gives the check, most often [fault.Corrupt].
func Open(ctx context.Context, obj source.Object, o *Options) (*Table, error) {
	t := &Table{obj: obj}
	if o != nil {
		t.opts = *o
	}
	t.limits = t.opts.Limits.withDefaults(obj.Size())
	if err := t.open(ctx); err != nil {
		return nil, fault.Locate(err, obj.Name(), "", 0)
	}
	t.tags = make(map[int32]int, len(t.dir.columns))
	for i, c := range t.dir.columns {
		t.tags[c.Tag] = i
	}
	return t, nil
}

func (t *Table) open(ctx context.Context) error {
	size := t.obj.Size()
	if size < HeaderSize {
		return tooShort(size)
	}
	content, inMemory := source.Bytes(t.obj)
	if inMemory {
		t.head, t.whole = content, true // which is read where it is
	} else if err := t.readTo(ctx, min(size, max(minFirstRead, min(t.obj.Cost().Gap, maxFirstRead)))); err != nil {
		return err
	}
	t.stored = append([]byte(nil), t.head[:HeaderSize]...)
	t.seal = protection(t.head)
	t.seal.Verified = len(t.opts.Keys.MAC) > 0 && !t.opts.SkipMAC
	decrypts := t.seal.Encrypted && len(t.opts.Keys.Encryption) > 0
	switch {
	case string(t.head[:4]) != magic:
	case inMemory && decrypts:
		t.head = bytes.Clone(t.head) // decrypting writes
	case decrypts || t.seal.Verified:
		if err := t.readTo(ctx, size); err != nil {
			return err
		}
	}
	if err := open(t.head, t.opts.Keys, t.opts.SkipMAC); err != nil {
		return err
	}
	if err := checkHeader(t.head); err != nil {
		return err
	}
	for {
		dir, err := parseDirectory(t.head, size)
		if err != errMore {
			t.dir = dir
			return err
		}
		next, err := more(t.head, size)
		if err != nil {
			return err
		}
		if err := t.readTo(ctx, next); err != nil {
			return err
		}
	}
}

// readTo makes head the first n bytes of the file at least.
func (t *Table) readTo(ctx context.Context, n int64) error {
	have := int64(len(t.head))
	if n > have {
		p := make([]byte, n)
		copy(p, t.head)
		if err := t.obj.ReadAt(source.ForDirectory(ctx), p[have:], have); err != nil {
			return err
		}
		t.head = p
	}
	t.whole = int64(len(t.head)) == t.obj.Size()
	return nil
}

// Close closes the object of the table.
func (t *Table) Close() error { return t.obj.Close() }

// Rows is the number of rows.
func (t *Table) Rows() int { return t.dir.rows }

// Columns are the descriptors, in the order of the file. They are the table's, for reading.
func (t *Table) Columns() []Descriptor { return t.dir.columns }

// Protection says what protects the file.
func (t *Table) Protection() Protection { return t.seal }

// ReadProtection says what protects a file, which may be one that there is no key for. It reads the header alone,
// and checks its magic, its version and its flags.
func ReadProtection(ctx context.Context, obj source.Object) (p Protection, err error) {
	head := make([]byte, HeaderSize)
	if obj.Size() < HeaderSize {
		return p, fault.Locate(tooShort(obj.Size()), obj.Name(), "", 0)
	}
	if err := obj.ReadAt(ctx, head, 0); err != nil {
		return p, err
	}
	p = protection(head)
	head[flagsAt] &^= flagEncrypted
	return p, fault.Locate(checkHeader(head), obj.Name(), "", 0)
}

func protection(head []byte) Protection {
	return Protection{Encrypted: head[flagsAt]&flagEncrypted != 0, Signed: !isZero(head[macAt:keyCheckAt])}
}

// HasCounts reports whether the descriptors have a count each, as in an old description of the format. Such a file is
// read, and never written: [Seal] and [Unseal] leave the counts out.
func (t *Table) HasCounts() bool { return t.dir.form == countForm }

// Name is that of the object.
func (t *Table) Name() string { return t.obj.Name() }

// Lookup returns the descriptor of the column with the tag.
func (t *Table) Lookup(tag int32) (Descriptor, bool) {
	i, ok := t.tags[tag]
	if !ok {
		return Descriptor{}, false
	}
	return t.dir.columns[i], true
}

// Read decodes the columns with the tags, all columns when there is no tag, and returns them in that order. What has to
// be fetched is fetched in one plan; columns are decoded in parallel.
//
// A tag that the file does not have is [fault.NotFound]. A fault in a column is the error for all of them.
func (t *Table) Read(ctx context.Context, tags ...int32) ([]*Column, error) {
	descs := t.dir.columns
	if len(tags) > 0 {
		descs = make([]Descriptor, len(tags))
		for i, tag := range tags {
			d, ok := t.Lookup(tag)
			if !ok {
				return nil, fault.New(fault.NotFound, "tcb", "there is no column with the tag %d", tag).In(t.Name())
			}
			descs[i] = d
		}
	}
	if err := t.checkRows(descs); err != nil {
		return nil, err
	}
	blocks, fetched, err := t.blocks(ctx, descs)
	if err != nil {
		return nil, fault.Locate(err, t.Name(), "", 0)
	}
	columns, errs := make([]*Column, len(descs)), make([]error, len(descs))
	decode := func(i int, bud *budget) {
		if err := ctx.Err(); err != nil {
			errs[i] = fault.New(nil, "tcb", "").Because(err).In(t.Name())
			return
		}
		d := descs[i]
		b := block{p: blocks[i], budget: bud, utf8: t.opts.StrictUTF8}
		b.own = d.Offset+d.Size > int64(len(t.head)) && d.Size > fetched/2
		columns[i], errs[i] = b.column(d, t.dir.rows)
		errs[i] = fault.Locate(errs[i], t.Name(), label(d.Tag, ""), d.Offset)
	}
	isLimit := func(err error) bool { return errors.Is(err, fault.Limit) }
	parallel := t.size(descs) >= parallelBytes
	if parallel {
		bud := newBudget(t.limits.Bytes)
		var work errgroup.Group
		work.SetLimit(runtime.GOMAXPROCS(0))
		for i := range descs {
			work.Go(func() error { decode(i, bud); return nil })
		}
		work.Wait() // the errors are in errs
	}
	// Which of the columns that share a budget goes beyond it depends on their order, so then they are decoded again, one
	// after the other: the same file has the same error.
	if !parallel || slices.ContainsFunc(errs, isLimit) {
		clear(columns)
		clear(errs)
		bud := newBudget(t.limits.Bytes)
		for i := range descs {
			if decode(i, bud); errs[i] != nil {
				break
			}
		}
	}
	// The first column with a fault, whichever was found first.
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return columns, nil
}

// checkRows refuses a table of more rows than may be read, before anything is allocated for them. A column whose block has
// not a byte for each is found first: that number of rows is a lie.
func (t *Table) checkRows(descs []Descriptor) error {
	err := t.tooManyRows()
	if err == nil {
		return nil
	}
	for _, d := range descs {
		if f := checkFloor(d, t.dir.rows); f != nil {
			return fault.Locate(f, t.Name(), label(d.Tag, ""), d.Offset)
		}
	}
	return err.In(t.Name())
}

// tooManyRows is the error for more rows than Limits.Rows, nil when there are not.
func (t *Table) tooManyRows() *fault.Error {
	rows := int64(t.dir.rows)
	if rows <= t.limits.Rows {
		return nil
	}
	return fault.New(fault.Limit, "tcb", "%d rows, at most %d are read; Limits.Rows allows more", rows, t.limits.Rows).At(HeaderSize)
}

// parallelBytes is from which size of blocks on columns are decoded in parallel: about 50 µs of work.
const parallelBytes = 32 << 10

// size is what blocks take and stand for, roughly.
func (t *Table) size(descs []Descriptor) int64 {
	n := int64(t.dir.rows) * int64(len(descs))
	for _, d := range descs {
		n += d.Size
	}
	return n
}

// blocks returns the bytes of the blocks, and how many bytes of them were fetched for this.
func (t *Table) blocks(ctx context.Context, descs []Descriptor) (_ [][]byte, fetched int64, err error) {
	out := make([][]byte, len(descs))
	var missing []source.Range
	var at []int
	for i, d := range descs {
		if end := d.Offset + d.Size; end <= int64(len(t.head)) {
			out[i] = t.head[d.Offset:end:end]
			continue
		}
		missing = append(missing, source.Range{Start: d.Offset, End: d.Offset + d.Size})
		at = append(at, i)
		fetched += d.Size
	}
	if len(missing) == 0 {
		return out, 0, nil
	}
	got, err := source.Fetch(ctx, t.obj, missing)
	for i, p := range got {
		out[at[i]] = p
	}
	return out, fetched, err
}
