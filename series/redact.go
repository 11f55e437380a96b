package series

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"iter"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"github.com/spilehq/spile/fault"
)

const (
	// RedactKeySize is the size of a key in bytes.
	RedactKeySize = 32
	// DefaultRedactBytes is what a redactor that is told nothing else holds of values and their replacements.
	DefaultRedactBytes = 1 << 30

	// shortText is the length of a replacement of 1 to shortText bytes. A rank among 2^47 values fits into it.
	shortText = 8
	// nameText is the length of the replacement of a name.
	nameText = 12
	// The lengths of values that no replacement contains. What is longer it contains by a chance of less than 2^-96 only, and
	// what is shorter hides nothing by its absence.
	leastAvoided = 4
	mostAvoided  = 16
)

// The characters of replacements, in the order of their bytes.
const (
	textAlphabet = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
	nameAlphabet = "0123456789abcdefghijklmnopqrstuvwxyz"
)

// RedactOptions are the options of a redactor.
type RedactOptions struct {
	Key        []byte   // of RedactKeySize bytes
	Keep       []string // labels whose values stay
	Names      bool     // replace the names of labels, too
	Generation *UUID    // of the artifact that is made; nil: one that follows from the key and that of the input
	Memory     int64    // bound of what is held of values and their replacements, in bytes, approximately; 0: DefaultRedactBytes
}

// Redactor replaces the values of labels, so that an artifact can be shown to others. A replacement begins with the rank of the
// value among those of its label, and goes on with a keyed hash of label and value (HMAC-SHA-256): the order of values, which of
// them are equal, which are null, and which are empty stay what they are. Its length is 8 bytes for a value of 1 to 8 bytes, 9 for
// 9 to 16, 17 for 17 to 32, and so on: the least of the class of its length, whose ends are powers of two. No replacement
// contains a value of 4 to 16 bytes that was replaced.
//
// Tables, TSIDs, numbers of rows, and what the manifest covers stay. A TSID may be a hash of the labels, and so confirm a
// guess of all of them. A redactor is not safe for concurrent use.
type Redactor struct {
	a      *Artifact
	opts   RedactOptions
	names  []string            // of the tags, as they become
	values []map[string]string // by tag; nil where they stay
	avoid  avoided
	layout WriteOptions
	keyed  hash.Hash // HMAC with the key
	text   []byte    // that is hashed
}

// NewRedactor reads all values of an artifact, and assigns their replacements.
func NewRedactor(ctx context.Context, a *Artifact, o *RedactOptions) (*Redactor, error) {
	r := &Redactor{a: a, opts: *o, values: make([]map[string]string, len(a.tags))}
	if len(r.opts.Key) != RedactKeySize {
		return nil, fault.New(fault.Invalid, "series", "a key of %d bytes, %d are one", len(r.opts.Key), RedactKeySize)
	}
	r.keyed = hmac.New(sha256.New, r.opts.Key)
	if a.manifest == nil {
		return nil, fault.New(fault.Invalid, "series", "is a part without its manifest").In(a.name)
	}
	r.opts.Memory = cmp.Or(max(0, r.opts.Memory), DefaultRedactBytes)
	for _, name := range r.opts.Keep {
		if !slices.ContainsFunc(a.tags, func(t Tag) bool { return t.Name == name }) {
			return nil, fault.New(fault.NotFound, "series", "there is no label %q", name).In(a.name)
		}
	}
	for i, t := range a.tags {
		r.names = append(r.names, t.Name)
		if !slices.Contains(r.opts.Keep, t.Name) {
			r.values[i] = make(map[string]string)
		}
	}
	if err := r.collect(ctx); err != nil {
		return nil, err
	}
	return r, r.assign(ctx)
}

// collect finds the values, and how the artifact is laid out.
func (r *Redactor) collect(ctx context.Context) error {
	index := make(map[string]int, len(r.a.tags))
	for i, t := range r.a.tags {
		index[t.Name] = i
	}
	held := int64(0)
	scan := tagScan{
		wants: func(b blockAt, c *column) (bool, error) {
			return c.hasStats && r.values[index[c.name]] != nil, nil
		},
		take: func(b blockAt, c *column, d *dict) error {
			values := r.values[index[c.name]]
			for _, v := range d.values()[1:] {
				if _, ok := values[v]; ok {
					continue
				}
				if held += 2*int64(len(v)) + shortText + 2*tallyEntrySize; held > r.opts.Memory {
					return fault.New(fault.Limit, "series", "memory of %d bytes: more values than that", r.opts.Memory)
				}
				values[strings.Clone(v)] = "" // the value alone, which does not keep the text of a dictionary
			}
			return nil
		},
	}
	var last *part
	for b, err := range r.a.blocks(ctx, []Range{everything}) {
		if err == nil && last != nil && last != b.part {
			err = scan.flush(ctx)
		}
		if err == nil {
			last = b.part
			r.layout.BlockSeries = max(r.layout.BlockSeries, int(b.series))
			for i := range b.columns {
				r.layout.Zstd = r.layout.Zstd || b.columns[i].Compression == compressionZstd
			}
			err = scan.block(ctx, b)
		}
		if err != nil {
			return err
		}
	}
	return scan.flush(ctx)
}

// assign makes the replacements.
func (r *Redactor) assign(ctx context.Context) error {
	for _, values := range r.values {
		for v := range values {
			r.avoid.add(v)
		}
	}
	for i, values := range r.values {
		if err := ctx.Err(); err != nil {
			return fault.New(nil, "series", "").In(r.a.name).Because(err)
		}
		sorted := slices.Sorted(maps.Keys(values))
		if len(sorted) > 0 && sorted[0] == "" { // which stays, and stays the least
			sorted = sorted[1:]
			values[""] = ""
		}
		texts, err := r.replace("value", r.a.tags[i].Name, sorted, textAlphabet, "", lengthOf)
		if err != nil {
			return err
		}
		for k, v := range sorted {
			values[v] = texts[k]
		}
	}
	if !r.opts.Names {
		return nil
	}
	sorted := slices.Sorted(slices.Values(r.names))
	texts, err := r.replaceNames("name", sorted, "l")
	if err != nil {
		return err
	}
	for i, name := range r.names {
		k, _ := slices.BinarySearch(sorted, name)
		r.names[i] = texts[k]
	}
	return nil
}

// lengthOf is the length of the replacement of a value that is not empty.
func lengthOf(v string) int {
	if len(v) <= shortText {
		return shortText
	}
	return 1<<(bits.Len(uint(len(v)-1))-1) + 1
}

func (r *Redactor) replaceNames(kind string, sorted []string, prefix string) ([]string, error) {
	return r.replace(kind, "", sorted, nameAlphabet, prefix, func(string) int { return nameText })
}

// replace gives texts for sorted values, which stand in the same order: a prefix, a rank of as many characters for each, and
// characters that the hash chooses.
func (r *Redactor) replace(kind, label string, sorted []string, alphabet, prefix string, length func(string) int) ([]string, error) {
	digits, room := 1, uint64(len(alphabet))
	for ; room < 2*uint64(len(sorted)); digits++ { // ranks can be left out
		room *= uint64(len(alphabet))
	}
	for ; len(prefix)+digits <= shortText; digits++ {
		texts, ok := r.ranked(kind, label, sorted, alphabet, prefix, digits, length)
		if ok {
			return texts, nil
		}
	}
	return nil, fault.New(fault.Limit, "series", "the values have so many texts in them that none is left to replace them by").On(label).In(r.a.name)
}

// ranked is replace with ranks of some digits. It fails when what has to be left out leaves too few.
func (r *Redactor) ranked(kind, label string, sorted []string, alphabet, prefix string, digits int, length func(string) int) ([]string, bool) {
	base := uint64(len(alphabet))
	room := uint64(1)
	for range digits {
		room *= base
	}
	out := make([]string, 0, len(sorted))
	var text []byte
	rank := uint64(0)
	for _, v := range sorted {
		seed := r.hash(kind, label, v)
		for {
			if rank >= room {
				return nil, false
			}
			var bad int // the digit that completes what is to be avoided
			text, bad = r.rank(append(text[:0], prefix...), rank, alphabet, digits)
			if bad < 0 && r.pad(&text, seed, alphabet, length(v)) {
				break
			}
			step := uint64(1)
			for ; bad >= 0 && bad < digits-1; bad++ {
				step *= base
			}
			rank = (rank/step + 1) * step
		}
		rank++
		out = append(out, string(text))
	}
	return out, true
}

// rank appends a rank. The second result is the first digit behind which there is something to be avoided, -1 if there is none.
func (r *Redactor) rank(text []byte, rank uint64, alphabet string, digits int) ([]byte, int) {
	start := len(text)
	text = append(text, make([]byte, digits)...)
	for i := digits - 1; i >= 0; i-- {
		text[start+i] = alphabet[rank%uint64(len(alphabet))]
		rank /= uint64(len(alphabet))
	}
	for i := range digits {
		if r.avoid.endsIn(text[:start+i+1]) {
			return text, i
		}
	}
	return text, -1
}

// padTries is how many times characters are chosen anew for a rank: the first ones may leave none for those behind them.
const padTries = 8

// pad appends characters that the hash chooses up to a length, each of them the next one where it would complete what is to be
// avoided. It fails where every character does.
func (r *Redactor) pad(text *[]byte, seed []byte, alphabet string, length int) bool {
	start := len(*text)
	for try := range padTries {
		if *text = (*text)[:start]; r.padOnce(text, seed, try, alphabet, length) {
			return true
		}
	}
	return false
}

func (r *Redactor) padOnce(text *[]byte, seed []byte, try int, alphabet string, length int) bool {
	block := seed // the first 32 characters; what comes behind them, and another try, is made of it
	for i := 0; len(*text) < length; i++ {
		if i%len(block) == 0 && i+try > 0 {
			h := hmac.New(sha256.New, seed)
			h.Write(binary.BigEndian.AppendUint64([]byte{byte(try)}, uint64(i/len(block))))
			block = h.Sum(nil)
		}
		*text = append(*text, 0)
		last := &(*text)[len(*text)-1]
		first, k := int(block[i%len(block)])%len(alphabet), 0
		for *last = alphabet[first]; r.avoid.endsIn(*text); *last = alphabet[(first+k)%len(alphabet)] {
			if k++; k == len(alphabet) {
				return false
			}
		}
	}
	return true
}

// hash is the keyed hash of a value.
func (r *Redactor) hash(kind, label, value string) []byte {
	r.keyed.Reset()
	r.text = r.text[:0]
	for _, s := range [...]string{kind, label, value} {
		r.text = append(binary.BigEndian.AppendUint64(r.text, uint64(len(s))), s...)
	}
	r.keyed.Write(r.text)
	return r.keyed.Sum(nil)
}

// avoided are texts that no replacement contains.
type avoided struct {
	texts   map[string]struct{}
	lengths [mostAvoided + 1]bool
	ends    []uint64 // a bit for the hash of the last 4 bytes of each: most texts need no look at the map
}

func (a *avoided) add(text string) {
	if n := len(text); n < leastAvoided || n > mostAvoided {
		return
	}
	if a.texts == nil {
		a.texts, a.ends = make(map[string]struct{}), make([]uint64, 1<<(avoidedBits-6))
	}
	a.texts[text] = struct{}{}
	a.lengths[len(text)] = true
	bit := endBit(text)
	a.ends[bit>>6] |= 1 << (bit & 63)
}

// avoidedBits is such that the bits take 512 KiB, which caches of processors hold.
const avoidedBits = 22

func endBit[T string | []byte](text T) uint32 {
	n := len(text)
	last := uint32(text[n-4]) | uint32(text[n-3])<<8 | uint32(text[n-2])<<16 | uint32(text[n-1])<<24
	return last * 0x9e3779b1 >> (32 - avoidedBits) // the golden ratio: neighbours get far from one another
}

// endsIn reports whether a text ends in one that is to be avoided.
func (a *avoided) endsIn(text []byte) bool {
	if len(text) < leastAvoided || a.texts == nil {
		return false
	}
	if bit := endBit(text); a.ends[bit>>6]&(1<<(bit&63)) == 0 {
		return false
	}
	for n := leastAvoided; n <= min(len(text), mostAvoided); n++ {
		if !a.lengths[n] {
			continue
		}
		if _, ok := a.texts[string(text[len(text)-n:])]; ok {
			return true
		}
	}
	return false
}

// Manifest is what the redacted artifact is built of: that of the input with the generation and the names that are new.
func (r *Redactor) Manifest() *Manifest {
	m := *r.a.manifest
	m.Files, m.unknown = nil, nil
	m.Tags = slices.Clone(m.Tags)
	for i := range m.Tags {
		m.Tags[i].Name = r.names[i]
	}
	if r.opts.Generation != nil {
		m.Generation = *r.opts.Generation
	} else {
		m.Generation = hashUUID(r.hash("generation", "", string(m.Generation[:])))
	}
	return &m
}

// Layout is how the redacted artifact is written to have the blocks of the input, if that was written by a program that fills
// them.
func (r *Redactor) Layout() *WriteOptions {
	o := r.layout
	return &o
}

// Records gives the series with their replacements, in the order of their identifiers.
func (r *Redactor) Records(ctx context.Context) iter.Seq2[Record, error] {
	index := make(map[string]int, len(r.a.tags))
	for i, t := range r.a.tags {
		index[t.Name] = i
	}
	return func(yield func(Record, error) bool) {
		for rec, err := range r.a.Records(ctx, everything) {
			for i := range rec.Labels {
				l := &rec.Labels[i]
				k := index[l.Name]
				l.Name = r.names[k]
				if r.values[k] == nil {
					continue
				}
				text, ok := r.values[k][l.Value]
				if !ok && err == nil {
					err = fault.New(fault.Changed, "series", "has a value that it did not have").On(rec.ID.String()).In(r.a.name)
				}
				l.Value = text
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// Metrics replaces the names of tables in a mapping of them to metrics. Their order stays, and equal ones stay equal.
func (r *Redactor) Metrics(names map[uint32]string) (map[uint32]string, error) {
	sorted := slices.Compact(slices.Sorted(maps.Values(names)))
	texts, err := r.replaceNames("metric", sorted, "m")
	if err != nil {
		return nil, err
	}
	out := make(map[uint32]string, len(names))
	for id, name := range names {
		k, _ := slices.BinarySearch(sorted, name)
		out[id] = texts[k]
	}
	return out, nil
}
