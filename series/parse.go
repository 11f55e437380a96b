package series

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
)

// ParseManifest reads a manifest and makes checks 2 to 5, 6 as far as the manifest alone tells, 8, 9 and 11 to 14. It goes
// over the text once, and keeps what the format defines.
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
	if bytes.HasPrefix(text, []byte("\xef\xbb\xbf")) {
		return nil, corrupt(2, "begins with a byte order mark")
	}
	if !utf8.Valid(text) {
		return nil, corrupt(2, "is not UTF-8")
	}
	p := &manifestParser{json: jsonText{p: text}}
	m := &Manifest{}
	if k := p.json.kind(); k != "object" && p.json.err == nil {
		return nil, corrupt(2, "is %s, not an object", aKind(k))
	}
	p.manifest(m, meta)
	if p.json.err == nil {
		p.json.end()
	}
	if p.json.err != nil {
		return nil, p.json.err
	}
	if p.err != nil {
		return nil, p.err
	}
	return m, m.check()
}

// manifestParser reads members into a manifest. Of what is wrong the lowest of the checks 2 to 4 counts, or else the first.
type manifestParser struct {
	json jsonText
	path []step
	err  *fault.Error
	rank int // of err
}

// step is a part of the name of a value in messages.
type step struct {
	name  string
	index int // in an array, -1 in none
}

func (p *manifestParser) fail(check int, format string, args ...any) {
	rank := 5
	if check >= 2 && check <= 4 {
		rank = check
	}
	if p.err == nil || rank < p.rank {
		p.err, p.rank = corrupt(check, format, args...), rank
	}
}

// failed is fail with another class.
func (p *manifestParser) failed(class error, check int, format string, args ...any) {
	if before := p.err; before == nil || check < p.rank {
		p.fail(check, format, args...)
		p.err.Class = class
	}
}

// name is the name of the value that is read.
func (p *manifestParser) name() string {
	text := ""
	for i, s := range p.path {
		if i > 0 && s.name != "" {
			text += "."
		}
		text += short(s.name)
		if s.index >= 0 {
			text += "[" + strconv.Itoa(s.index) + "]"
		}
	}
	return text
}

// object reads an object. Each of the members is handed to read by its place among them, once; what is not among them is
// passed over. The first required of them must be there.
func (p *manifestParser) object(m *Manifest, check int, members []string, required int, read func(i int)) {
	if k := p.json.kind(); k != "object" {
		p.fail(check, "%s is %s, not an object", p.name(), aKind(k))
		p.json.skip()
		return
	}
	var seen uint32
	p.path = append(p.path, step{index: -1})
	at := len(p.path) - 1
	for p.json.open(); p.json.more('}'); {
		name := p.json.key()
		i := slices.Index(members, string(name))
		if i < 0 {
			if len(m.unknown) < maxUnknown {
				p.path[at].name = string(name)
				m.unknown = append(m.unknown, p.name())
			} else {
				m.moreUnknown++
			}
			p.json.skip()
			continue
		}
		p.path[at].name = members[i]
		if seen&(1<<i) != 0 {
			p.fail(2, "the member %s is there twice", p.name())
			p.json.skip()
			continue
		}
		seen |= 1 << i
		read(i)
	}
	for i := range required {
		if seen&(1<<i) == 0 {
			p.path[at].name = members[i]
			check := check
			if at == 0 && i < 2 {
				check = 3 + i // the format and the version
			}
			p.fail(check, "the member %s is missing", p.name())
		}
	}
	p.path = p.path[:at]
}

// maxUnknown is how many members that are not known are told.
const maxUnknown = 100

// array reads an array.
func (p *manifestParser) array(check int, read func()) {
	if k := p.json.kind(); k != "array" {
		p.fail(check, "%s is %s, not an array", p.name(), aKind(k))
		p.json.skip()
		return
	}
	at := len(p.path) - 1
	i := 0
	for p.json.open(); p.json.more(']'); i++ {
		p.path[at].index = i
		read()
	}
	p.path[at].index = -1
}

func (p *manifestParser) text(check int) string {
	if k := p.json.kind(); k != "string" {
		p.fail(check, "%s is %s, not a string", p.name(), aKind(k))
		p.json.skip()
		return ""
	}
	return string(p.json.text())
}

func (p *manifestParser) unsigned(check int, most uint64) uint64 {
	if p.json.kind() != "number" {
		p.fail(check, "%s is no unsigned integer", p.name())
		p.json.skip()
		return 0
	}
	n, ok := digits(p.json.number())
	switch {
	case !ok:
		p.fail(check, "%s is no unsigned integer of 64 bits", p.name())
	case n > most:
		p.fail(check, "%s is %d, at most %d", p.name(), n, most)
	}
	return n
}

func (p *manifestParser) signed(check int) int64 {
	if p.json.kind() != "number" {
		p.fail(check, "%s is no integer", p.name())
		p.json.skip()
		return 0
	}
	literal := p.json.number()
	size, negative := bytes.CutPrefix(literal, []byte("-"))
	n, ok := digits(size)
	switch {
	case ok && !negative && n <= math.MaxInt64:
		return int64(n)
	case ok && negative && n > 0 && n <= 1<<63:
		return int64(-n)
	}
	p.fail(check, "%s is no integer of 64 bits", p.name())
	return 0
}

// digits reads a number that is nothing but digits.
func digits(p []byte) (n uint64, ok bool) {
	for _, c := range p {
		d := uint64(c - '0')
		if d > 9 || n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = 10*n + d
	}
	return n, len(p) > 0
}

func (p *manifestParser) uuid(check int) UUID {
	text := p.text(check)
	u, err := ParseUUID(text)
	if err != nil {
		p.fail(check, "%s is %q, which is no UUID", p.name(), short(text))
	}
	return u
}

func (p *manifestParser) manifest(m *Manifest, meta bool) {
	members := []string{"format", "version", "region_id", "generation", "tags", "coverage", "files"}
	required := len(members)
	if meta {
		required--
	}
	p.object(m, 5, members, required, func(i int) {
		switch i {
		case 0:
			if format := p.text(3); format != FormatName {
				p.failed(fault.UnsupportedVersion, 3, "the format is %q, not %q", short(format), FormatName)
			}
		case 1:
			if version := p.unsigned(4, math.MaxUint64); version != Version {
				p.failed(fault.UnsupportedVersion, 4, "the version is %d, %d is read", version, Version)
			}
		case 2:
			m.RegionID = p.unsigned(5, math.MaxUint64)
		case 3:
			m.Generation = p.uuid(6)
		case 4:
			p.array(5, func() {
				var t Tag
				p.object(m, 5, []string{"column_id", "name"}, 2, func(i int) {
					if i == 0 {
						t.ColumnID = uint32(p.unsigned(5, math.MaxUint32))
					} else {
						t.Name = p.text(5)
					}
				})
				m.Tags = append(m.Tags, t)
			})
		case 5:
			p.coverage(m)
		case 6:
			if meta {
				p.json.skip()
				return
			}
			p.array(5, func() { m.Files = append(m.Files, p.file(m)) })
		}
	})
}

func (p *manifestParser) file(m *Manifest) (f File) {
	p.object(m, 5, []string{"part_id", "file_size", "num_series", "first", "last"}, 5, func(i int) {
		switch i {
		case 0:
			f.PartID = uint32(p.unsigned(5, math.MaxUint32))
		case 1:
			f.FileSize = p.unsigned(5, math.MaxUint64)
		case 2:
			f.NumSeries = p.unsigned(5, math.MaxUint64)
		case 3:
			f.First = p.id(m)
		case 4:
			f.Last = p.id(m)
		}
	})
	return f
}

func (p *manifestParser) id(m *Manifest) (id ID) {
	p.object(m, 5, []string{"table_id", "tsid"}, 2, func(i int) {
		if i == 0 {
			id.Table = uint32(p.unsigned(5, math.MaxUint32))
		} else {
			id.TSID = p.unsigned(5, math.MaxUint64)
		}
	})
	return id
}

var timeUnits = []string{"Second", "Millisecond", "Microsecond", "Nanosecond"}

func (p *manifestParser) timestamp(m *Manifest) *Timestamp {
	var t Timestamp
	p.object(m, 9, []string{"value", "unit"}, 2, func(i int) {
		if i == 0 {
			t.Value = p.signed(9)
			return
		}
		if t.Unit = p.text(9); !slices.Contains(timeUnits, t.Unit) {
			p.fail(9, "%s is %q", p.name(), short(t.Unit))
		}
	})
	return &t
}

// coverage reads the coverage, of which the members but two may be missing.
func (p *manifestParser) coverage(m *Manifest) {
	c := &m.Coverage
	p.object(m, 5, []string{"file_size", "index_uuid", "bucket_start", "bucket_end", "source_file_ids",
		"min_file_sequence", "max_file_sequence", "compaction_window_secs", "window_sequences", "artifact"}, 2, func(i int) {
		switch i {
		case 0:
			if size := p.unsigned(9, math.MaxUint64); size != 0 {
				p.fail(9, "%s is %d, not 0", p.name(), size)
			}
		case 1:
			c.IndexUUID = p.uuid(9)
		case 2:
			c.BucketStart = p.timestamp(m)
		case 3:
			c.BucketEnd = p.timestamp(m)
		case 4:
			c.SourceFileIDs = []UUID{}
			p.array(9, func() { c.SourceFileIDs = append(c.SourceFileIDs, p.uuid(9)) })
		case 5:
			n := p.unsigned(9, math.MaxUint64)
			c.MinFileSequence = &n
		case 6:
			n := p.unsigned(9, math.MaxUint64)
			c.MaxFileSequence = &n
		case 7:
			n := p.signed(9)
			c.CompactionWindowSecs = &n
		case 8:
			p.windows(m)
		case 9:
			if k := p.json.kind(); k != "null" {
				p.fail(9, "%s is %s, not null", p.name(), aKind(k))
			}
			p.json.skip()
		}
	})
}

// windows reads an object with a member for each window.
func (p *manifestParser) windows(m *Manifest) {
	if k := p.json.kind(); k != "object" {
		p.fail(9, "%s is %s, not an object", p.name(), aKind(k))
		p.json.skip()
		return
	}
	m.Coverage.WindowSequences = make(map[string]Window)
	for p.json.open(); p.json.more('}'); {
		start := string(p.json.key())
		p.path = append(p.path, step{start, -1})
		if _, err := strconv.ParseInt(start, 10, 64); err != nil {
			p.fail(9, "%s is no start of a window", p.name())
			start = "" // which need not be kept
		} else if _, twice := m.Coverage.WindowSequences[start]; twice {
			p.fail(2, "the member %s is there twice", p.name())
		}
		var w Window
		p.object(m, 9, []string{"start", "end", "max_sequence"}, 3, func(i int) {
			switch i {
			case 0:
				w.Start = p.signed(9)
			case 1:
				w.End = p.signed(9)
			case 2:
				w.MaxSequence = p.unsigned(9, math.MaxUint64)
			}
		})
		m.Coverage.WindowSequences[start] = w
		p.path = p.path[:len(p.path)-1]
	}
}
