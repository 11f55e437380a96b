package series

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/value"
)

// The names and numbers of the format.
const (
	FormatName   = "columnar-series"
	Version      = 1
	ManifestName = "manifest.json"

	maxManifest = 64 << 20

	tsidColumn     = "__tsid"
	rowCountColumn = "__series_row_count"
	tableColumn    = "__table_id"
)

// PartName is the name of the object of a part.
func PartName(part uint32) string { return fmt.Sprintf("part-%d.series", part) }

// Tag is a tag column of the region; its name is that of a label.
type Tag struct {
	ColumnID uint32 `json:"column_id"`
	Name     string `json:"name"`
}

// Timestamp is an instant in a unit.
type Timestamp struct {
	Value int64  `json:"value"`
	Unit  string `json:"unit"` // "Second", "Millisecond", "Microsecond" or "Nanosecond"
}

// Before reports whether an instant is before another one, whatever their units are.
func (t Timestamp) Before(u Timestamp) bool { return before(t, u) }

// Window summarises the source files of an aligned window of time.
type Window struct {
	Start       int64  `json:"start"` // seconds
	End         int64  `json:"end"`
	MaxSequence uint64 `json:"max_sequence"`
}

// Coverage says what an artifact covers.
type Coverage struct {
	IndexUUID            UUID
	BucketStart          *Timestamp
	BucketEnd            *Timestamp
	SourceFileIDs        []UUID
	MinFileSequence      *uint64
	MaxFileSequence      *uint64
	CompactionWindowSecs *int64
	WindowSequences      map[string]Window
}

// File is a part, as the manifest lists it.
type File struct {
	PartID    uint32
	FileSize  uint64
	NumSeries uint64
	First     ID
	Last      ID
}

// Manifest is the content of manifest.json.
type Manifest struct {
	RegionID   uint64
	Generation UUID
	Tags       []Tag
	Coverage   Coverage
	Files      []File

	unknown []string // members that the format does not define, for the verifier
}

// ParseManifest reads a manifest and makes checks 2 to 5, 6 as far as the manifest alone tells, 8, 9 and 11 to 14.
func ParseManifest(text []byte) (*Manifest, error) { return parseManifest(text, false) }

// ParseMeta reads what an artifact is to be built of: a manifest whose files are not there, or are not looked at.
func ParseMeta(text []byte) (*Manifest, error) {
	m, err := parseManifest(text, true)
	if f, ok := err.(*fault.Error); ok {
		c := *f
		c.Class = fault.Invalid // it is no file of the format
		return nil, &c
	}
	return m, err
}

func parseManifest(text []byte, meta bool) (*Manifest, error) {
	root, err := parseJSON(text)
	if err != nil {
		return nil, err
	}
	p := &manifestParser{}
	m := &Manifest{}
	o := p.object(root, "", "format", "version", "region_id", "generation", "tags", "coverage", "files")
	if meta {
		o.values["files"] = node{kind: value.Array}
	}
	// Checks 3 and 4 come before those of the other members.
	if format := p.text(o, "format", 3); p.err == nil && format != FormatName {
		return nil, failed(fault.UnsupportedVersion, 3, "the format is %q, not %q", format, FormatName)
	}
	if version := p.unsigned(o, "version", 4, math.MaxUint64); p.err == nil && version != Version {
		return nil, failed(fault.UnsupportedVersion, 4, "the version is %d, %d is read", version, Version)
	}
	m.RegionID = p.unsigned(o, "region_id", 5, math.MaxUint64)
	m.Generation = p.uuid(o, "generation", 6)
	for i, v := range p.array(o, "tags") {
		at := fmt.Sprintf("tags[%d]", i)
		t := p.object(v, at, "column_id", "name")
		m.Tags = append(m.Tags, Tag{uint32(p.unsigned(t, "column_id", 5, math.MaxUint32)), p.text(t, "name", 5)})
	}
	p.coverage(o, &m.Coverage)
	for i, v := range p.array(o, "files") {
		at := fmt.Sprintf("files[%d]", i)
		f := p.object(v, at, "part_id", "file_size", "num_series", "first", "last")
		m.Files = append(m.Files, File{
			uint32(p.unsigned(f, "part_id", 5, math.MaxUint32)), p.unsigned(f, "file_size", 5, math.MaxUint64),
			p.unsigned(f, "num_series", 5, math.MaxUint64), p.id(f, "first"), p.id(f, "last"),
		})
	}
	if p.err != nil {
		return nil, p.err
	}
	m.unknown = p.unknown
	return m, m.check()
}

// check makes the checks between members.
func (m *Manifest) check() error {
	if err := checkTags(m.Tags); err != nil {
		return corrupt(8, "%s", err)
	}
	if m.Coverage.IndexUUID != m.Generation {
		return corrupt(9, "the index of the coverage is %s, the generation %s", m.Coverage.IndexUUID, m.Generation)
	}
	for i, f := range m.Files {
		switch {
		case f.PartID != uint32(i):
			return corrupt(11, "files[%d] is part %d", i, f.PartID)
		case f.NumSeries < 1 || f.Last.Less(f.First):
			return corrupt(12, "part %d has %d series from %s to %s", i, f.NumSeries, f.First, f.Last)
		case i > 0 && !m.Files[i-1].Last.Less(f.First):
			return corrupt(13, "part %d begins with %s, the part before ends with %s", i, f.First, m.Files[i-1].Last)
		case f.FileSize < minPartSize:
			return corrupt(14, "part %d has %d bytes, the least is %d", i, f.FileSize, minPartSize)
		}
	}
	return nil
}

// checkTags says what is wrong with the tags of a region.
func checkTags(tags []Tag) error {
	names, ids := make(map[string]bool), make(map[uint32]bool)
	for _, t := range tags {
		switch {
		case t.Name == "":
			return fmt.Errorf("a tag without a name")
		case t.Name == tableColumn || t.Name == tsidColumn || t.Name == rowCountColumn:
			return fmt.Errorf("a tag with the reserved name %s", t.Name)
		case names[t.Name]:
			return fmt.Errorf("two tags with the name %q", t.Name)
		case ids[t.ColumnID]:
			return fmt.Errorf("two tags with the column %d", t.ColumnID)
		}
		names[t.Name], ids[t.ColumnID] = true, true
	}
	return nil
}

// A node is a value of JSON text, with its members in order, repeated ones among them.
type node struct {
	kind    value.Kind
	number  uint64 // of Uint; of Nint the encoding of CBOR, -1 - number
	text    string
	members []member // of a Map
	items   []node   // of an Array
}

type member struct {
	name  string
	value node
}

// parseJSON reads the text by way of CBOR, which keeps the integers exactly and tells them from other numbers.
func parseJSON(text []byte) (node, error) {
	bad := func(err error) error { return corrupt(2, "is not one JSON object").Because(err) }
	if !utf8.Valid(text) {
		return node{}, corrupt(2, "is not UTF-8")
	}
	if bytes.HasPrefix(text, []byte("\xef\xbb\xbf")) {
		return node{}, corrupt(2, "begins with a byte order mark")
	}
	var losses value.Losses
	data, err := value.AppendFromJSON(nil, value.CBOR, text, &value.JSONReadOptions{KeepDup: true}, &losses)
	if err != nil {
		return node{}, bad(err)
	}
	for loss := range losses.All() {
		if loss.Kind == value.LossSign {
			return node{}, corrupt(5, "holds the number -0").At(loss.Offset)
		}
	}
	s := value.NewScanner(value.CBOR, data, value.Limits{})
	if err := s.Next(); err != nil {
		return node{}, bad(err)
	}
	n, err := readNode(s)
	if err != nil {
		return node{}, bad(err)
	}
	if n.kind != value.Map {
		return node{}, corrupt(2, "is a %s, not an object", n.kind)
	}
	return n, nil
}

// readNode reads the value whose token the scanner has. Its depth is that of the text, which was limited when it was read.
func readNode(s *value.Scanner) (node, error) {
	n := node{kind: s.Kind}
	switch s.Kind {
	case value.Uint, value.Nint:
		n.number = s.Bits
	case value.String:
		n.text = string(s.Data)
	case value.Array, value.Map:
		for {
			if err := s.Next(); err != nil {
				return n, err
			}
			if s.Kind == value.End {
				return n, nil
			}
			var m member
			if n.kind == value.Map {
				m.name = string(s.Data)
				if err := s.Next(); err != nil {
					return n, err
				}
			}
			v, err := readNode(s)
			if err != nil {
				return n, err
			}
			if n.kind == value.Map {
				m.value = v
				n.members = append(n.members, m)
			} else {
				n.items = append(n.items, v)
			}
		}
	case value.Tag: // an integer beyond 64 bits
		if err := s.Next(); err != nil {
			return n, err
		}
	}
	return n, nil
}

// manifestParser takes members out of objects. The first thing that is wrong stays.
type manifestParser struct {
	err     error
	unknown []string
}

type fields struct {
	at     string
	values map[string]node
}

func (p *manifestParser) fail(check int, format string, args ...any) {
	if p.err == nil {
		p.err = corrupt(check, format, args...)
	}
}

func (f fields) name(member string) string {
	if f.at == "" {
		return member
	}
	return f.at + "." + member
}

// object takes the members of an object that the format defines.
func (p *manifestParser) object(n node, at string, defined ...string) fields {
	f := fields{at, make(map[string]node)}
	if n.kind != value.Map {
		p.fail(5, "%s is a %s, not an object", at, n.kind)
		return f
	}
	for _, m := range n.members {
		if !slices.Contains(defined, m.name) {
			p.unknown = append(p.unknown, f.name(m.name))
			continue
		}
		if _, twice := f.values[m.name]; twice {
			p.fail(2, "the member %s is there twice", f.name(m.name))
		}
		f.values[m.name] = m.value
	}
	return f
}

// member finds a member that must be there.
func (p *manifestParser) member(f fields, name string, check int) (node, bool) {
	n, ok := f.values[name]
	if !ok {
		p.fail(check, "the member %s is missing", f.name(name))
	}
	return n, ok
}

func (p *manifestParser) text(f fields, name string, check int) string {
	n, ok := p.member(f, name, check)
	if ok && n.kind != value.String {
		p.fail(check, "%s is a %s, not a string", f.name(name), n.kind)
	}
	return n.text
}

func (p *manifestParser) unsigned(f fields, name string, check int, most uint64) uint64 {
	n, ok := p.member(f, name, check)
	switch {
	case !ok:
	case n.kind != value.Uint:
		p.fail(check, "%s is no unsigned integer", f.name(name))
	case n.number > most:
		p.fail(check, "%s is %d, at most %d", f.name(name), n.number, most)
	}
	return n.number
}

func (p *manifestParser) signed(f fields, name string, check int) int64 {
	n, ok := p.member(f, name, check)
	switch {
	case ok && n.number > math.MaxInt64 || ok && n.kind != value.Uint && n.kind != value.Nint:
		p.fail(check, "%s is no integer of 64 bits", f.name(name))
	case n.kind == value.Nint:
		return -1 - int64(n.number)
	}
	return int64(n.number)
}

func (p *manifestParser) uuid(f fields, name string, check int) UUID {
	text := p.text(f, name, check)
	u, err := ParseUUID(text)
	if err != nil {
		p.fail(check, "%s is %q, which is no UUID", f.name(name), text)
	}
	return u
}

func (p *manifestParser) array(f fields, name string) []node {
	n, ok := p.member(f, name, 5)
	if ok && n.kind != value.Array {
		p.fail(5, "%s is a %s, not an array", f.name(name), n.kind)
	}
	return n.items
}

func (p *manifestParser) id(f fields, name string) ID {
	n, _ := p.member(f, name, 5)
	o := p.object(n, f.name(name), "table_id", "tsid")
	return ID{uint32(p.unsigned(o, "table_id", 5, math.MaxUint32)), p.unsigned(o, "tsid", 5, math.MaxUint64)}
}

var timeUnits = []string{"Second", "Millisecond", "Microsecond", "Nanosecond"}

func (p *manifestParser) timestamp(f fields, name string) *Timestamp {
	o := p.object(f.values[name], f.name(name), "value", "unit")
	t := &Timestamp{p.signed(o, "value", 9), p.text(o, "unit", 9)}
	if p.err == nil && !slices.Contains(timeUnits, t.Unit) {
		p.fail(9, "%s has the unit %q", f.name(name), t.Unit)
	}
	return t
}

// coverage reads the coverage, of which the members but two may be missing.
func (p *manifestParser) coverage(f fields, c *Coverage) {
	n, _ := p.member(f, "coverage", 5)
	o := p.object(n, "coverage", "file_size", "index_uuid", "bucket_start", "bucket_end", "source_file_ids",
		"min_file_sequence", "max_file_sequence", "compaction_window_secs", "window_sequences", "artifact")
	if p.err != nil {
		return
	}
	if size := p.unsigned(o, "file_size", 9, math.MaxUint64); size != 0 {
		p.fail(9, "coverage.file_size is %d, not 0", size)
	}
	c.IndexUUID = p.uuid(o, "index_uuid", 9)
	has := func(name string) bool { _, ok := o.values[name]; return ok }
	if a, ok := o.values["artifact"]; ok && a.kind != value.Null {
		p.fail(9, "coverage.artifact is there")
	}
	if has("bucket_start") {
		c.BucketStart = p.timestamp(o, "bucket_start")
	}
	if has("bucket_end") {
		c.BucketEnd = p.timestamp(o, "bucket_end")
	}
	if has("source_file_ids") {
		c.SourceFileIDs = []UUID{}
		for i, n := range p.array(o, "source_file_ids") {
			u, err := ParseUUID(n.text)
			if n.kind != value.String || err != nil {
				p.fail(9, "coverage.source_file_ids[%d] is no UUID", i)
			}
			c.SourceFileIDs = append(c.SourceFileIDs, u)
		}
	}
	number := func(name string) *uint64 {
		if !has(name) {
			return nil
		}
		n := p.unsigned(o, name, 9, math.MaxUint64)
		return &n
	}
	c.MinFileSequence, c.MaxFileSequence = number("min_file_sequence"), number("max_file_sequence")
	if has("compaction_window_secs") {
		n := p.signed(o, "compaction_window_secs", 9)
		c.CompactionWindowSecs = &n
	}
	if !has("window_sequences") {
		return
	}
	n = o.values["window_sequences"]
	if n.kind != value.Map {
		p.fail(9, "coverage.window_sequences is a %s, not an object", n.kind)
		return
	}
	c.WindowSequences = make(map[string]Window)
	for _, m := range n.members {
		at := "coverage.window_sequences." + m.name
		if _, err := strconv.ParseInt(m.name, 10, 64); err != nil {
			p.fail(9, "%s is no start of a window", at)
		}
		if _, twice := c.WindowSequences[m.name]; twice {
			p.fail(2, "the member %s is there twice", at)
		}
		w := p.object(m.value, at, "start", "end", "max_sequence")
		c.WindowSequences[m.name] = Window{p.signed(w, "start", 9), p.signed(w, "end", 9), p.unsigned(w, "max_sequence", 9, math.MaxUint64)}
	}
}

// The JSON forms of what is written.
type idJSON struct {
	Table uint32 `json:"table_id"`
	TSID  uint64 `json:"tsid"`
}

type fileJSON struct {
	PartID    uint32 `json:"part_id"`
	FileSize  uint64 `json:"file_size"`
	NumSeries uint64 `json:"num_series"`
	First     idJSON `json:"first"`
	Last      idJSON `json:"last"`
}

type coverageJSON struct {
	FileSize             uint64            `json:"file_size"`
	IndexUUID            string            `json:"index_uuid"`
	BucketStart          Timestamp         `json:"bucket_start"`
	BucketEnd            Timestamp         `json:"bucket_end"`
	SourceFileIDs        []string          `json:"source_file_ids"`
	MinFileSequence      uint64            `json:"min_file_sequence"`
	MaxFileSequence      uint64            `json:"max_file_sequence"`
	CompactionWindowSecs int64             `json:"compaction_window_secs"`
	WindowSequences      map[string]Window `json:"window_sequences"`
}

type manifestJSON struct {
	Format     string       `json:"format"`
	Version    int          `json:"version"`
	RegionID   uint64       `json:"region_id"`
	Generation string       `json:"generation"`
	Tags       []Tag        `json:"tags"`
	Coverage   coverageJSON `json:"coverage"`
	Files      []fileJSON   `json:"files"`
}

// AppendJSON appends the manifest as a writer stores it: all members, two blanks a level. What the coverage does not know
// is zero or empty.
func (m *Manifest) AppendJSON(dst []byte) ([]byte, error) {
	c := &m.Coverage
	out := manifestJSON{
		Format: FormatName, Version: Version, RegionID: m.RegionID, Generation: m.Generation.String(),
		Tags: append([]Tag{}, m.Tags...), Files: []fileJSON{},
		Coverage: coverageJSON{
			IndexUUID: c.IndexUUID.String(), BucketStart: Timestamp{Unit: timeUnits[0]}, BucketEnd: Timestamp{Unit: timeUnits[0]},
			SourceFileIDs: []string{}, WindowSequences: map[string]Window{},
		},
	}
	if c.BucketStart != nil {
		out.Coverage.BucketStart = *c.BucketStart
	}
	if c.BucketEnd != nil {
		out.Coverage.BucketEnd = *c.BucketEnd
	}
	for _, u := range c.SourceFileIDs {
		out.Coverage.SourceFileIDs = append(out.Coverage.SourceFileIDs, u.String())
	}
	slices.Sort(out.Coverage.SourceFileIDs)
	if c.MinFileSequence != nil {
		out.Coverage.MinFileSequence = *c.MinFileSequence
	}
	if c.MaxFileSequence != nil {
		out.Coverage.MaxFileSequence = *c.MaxFileSequence
	}
	if c.CompactionWindowSecs != nil {
		out.Coverage.CompactionWindowSecs = *c.CompactionWindowSecs
	}
	if c.WindowSequences != nil {
		out.Coverage.WindowSequences = c.WindowSequences
	}
	for _, f := range m.Files {
		out.Files = append(out.Files, fileJSON{f.PartID, f.FileSize, f.NumSeries, idJSON(f.First), idJSON(f.Last)})
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(out); err != nil {
		return dst, fault.New(fault.Invalid, "series", "the manifest").Because(err)
	}
	if b.Len() > maxManifest {
		return dst, fault.New(fault.Limit, "series", "a manifest of %d bytes, at most %d", b.Len(), maxManifest)
	}
	return append(dst, b.Bytes()...), nil
}
