package series

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
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

	unknown     []string // members that the format does not define, for the verifier; the first ones
	moreUnknown int      // that are not listed
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
		case !utf8.ValidString(t.Name):
			return fmt.Errorf("a tag whose name, %q, is not UTF-8", short(t.Name))
		case t.Name == tableColumn || t.Name == tsidColumn || t.Name == rowCountColumn:
			return fmt.Errorf("a tag with the reserved name %s", t.Name)
		case names[t.Name]:
			return fmt.Errorf("two tags with the name %q", short(t.Name))
		case ids[t.ColumnID]:
			return fmt.Errorf("two tags with the column %d", t.ColumnID)
		}
		names[t.Name], ids[t.ColumnID] = true, true
	}
	return nil
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
