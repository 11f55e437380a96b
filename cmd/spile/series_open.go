package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/series"
	"github.com/spilehq/spile/source"
)

// artifact is a FILE argument that is a series artifact: its folder, its manifest, or one part alone.
type artifact struct {
	*series.Artifact // nil where the verb opens it itself
	e                *env
	in               *sourceFlags
	dir              string        // the folder, "" for a part alone
	url              string        // of the manifest, "" when it is a file of this machine
	first            source.Object // the manifest, until it is taken, or the part
	manifestSize     int64
}

// artifactInFlags say how artifacts are read. Verbs that read none do not have them.
type artifactInFlags struct {
	closed bool // set by verbs that want to know where the artifact is, not what is in it
	once   bool // set by verbs that read everything once, and need no cache
	strict bool // of many, the first bad one is an error

	cache *series.Cache // of verbs that read many artifacts at a time, and have one for all
}

// addArtifacts says that the verb reads series artifacts as well.
func (f *sourceFlags) addArtifacts() { f.artifacts = &artifactInFlags{} }

// folder returns the local folder that a FILE argument names.
func folder(arg string) (string, bool) {
	if arg == "-" {
		return "", false
	}
	path, err := localPath(arg)
	if err != nil {
		return "", false
	}
	info, err := os.Stat(path)
	return path, err == nil && info.IsDir()
}

// openFolder opens the artifact in a folder.
func (e *env) openFolder(ctx context.Context, dir string, f *sourceFlags) (*document, error) {
	if f.artifacts == nil {
		if _, err := os.Lstat(filepath.Join(dir, series.ManifestName)); err == nil {
			return nil, notDocument(formatSeries).In(dir)
		}
		return nil, fault.New(fault.Invalid, "", "is a folder, and this verb takes files").In(dir)
	}
	if f.format != anyFormat && f.format != formatSeries {
		return nil, fault.New(fault.Invalid, "", "is a folder, and --format %s is of files", f.format).In(dir)
	}
	path := filepath.Join(dir, series.ManifestName)
	obj, err := openPath(ctx, path, f)
	if errors.Is(err, fs.ErrNotExist) {
		if below := artifactsBelow(dir); len(below) > 0 {
			return nil, fault.New(fault.Invalid, "", "is a folder of artifacts; name one, as %s", below[0]).In(dir)
		}
		text := "is a folder without %s; the folder of a series artifact has one"
		if f.tables != nil { // the verb reads documents and tables, too
			text += ", and a pattern in quotes, '" + filepath.Join(dir, "*") + "', stands for the files in a folder"
		}
		return nil, fault.New(fault.Invalid, "", text, series.ManifestName).In(dir)
	}
	if err != nil {
		return nil, err
	}
	d := &document{name: dir, format: formatSeries}
	if err := d.openManifest(ctx, e.metered(obj), e, f); err != nil {
		obj.Close()
		return nil, err
	}
	return d, nil
}

// openSeries opens a document that is a part or a manifest.
func (d *document) openSeries(ctx context.Context, obj source.Object, e *env, f *sourceFlags) error {
	if f.artifacts == nil {
		return notDocument(formatSeries)
	}
	head, err := headOf(ctx, obj, int64(f.offset), 8)
	switch {
	case err != nil:
		return err
	case len(head) > 0 && strings.IndexByte("{ \t\r\n\xef", head[0]) >= 0 && f.offset == 0: // --format says so
		return d.openManifest(ctx, obj, e, f)
	}
	return d.openPart(ctx, obj, e, f)
}

// openManifest opens a document that is an artifact, by its manifest. After an error obj is open.
func (d *document) openManifest(ctx context.Context, obj source.Object, e *env, f *sourceFlags) error {
	s, isStored := obj.(*atStore)
	if obj.Version() == "" && !isStored {
		return fault.New(fault.Invalid, "", "is the manifest of an artifact, whose parts lie beside it in a folder; name the folder").In(obj.Name())
	}
	a := &artifact{e: e, in: f, dir: filepath.Dir(obj.Name()), first: obj, manifestSize: obj.Size()}
	if isStored {
		a.dir, a.url = shown(beside(s.url, "")), s.url
	}
	d.artifact, d.size = a, obj.Size()
	if f.artifacts.closed {
		return nil
	}
	var err error
	a.Artifact, err = series.Open(ctx, func(ctx context.Context, name string) (source.Object, error) {
		obj, err := a.open(ctx, name)
		if name == series.ManifestName && err == nil {
			obj = unclosed{obj} // whoever opened it closes it after an error
		}
		return obj, err
	}, a.readOptions())
	if err != nil {
		return err
	}
	if err := checkTotals(a.Manifest()); err != nil {
		return fault.Locate(err, obj.Name(), "", 0)
	}
	obj.Close()
	return nil
}

// checkTotals refuses a manifest whose parts have more bytes or series together than any artifact: their sums are printed.
func checkTotals(m *series.Manifest) error {
	var bytes, count uint64
	for _, f := range m.Files {
		if f.FileSize > math.MaxInt64-bytes || f.NumSeries > math.MaxInt64-count {
			return fault.New(fault.Limit, "", "the parts up to %d have more than %d bytes, or series, together", f.PartID, int64(math.MaxInt64))
		}
		bytes, count = bytes+f.FileSize, count+f.NumSeries
	}
	return nil
}

// unclosed is an object that another one closes.
type unclosed struct{ source.Object }

func (unclosed) Close() error { return nil }

// openPart opens a document that is a part.
func (d *document) openPart(ctx context.Context, obj source.Object, e *env, f *sourceFlags) error {
	obj, err := from(obj, f.offset)
	if err != nil {
		return err
	}
	d.artifact = &artifact{e: e, in: f, first: obj}
	if !f.artifacts.closed {
		d.artifact.Artifact, err = series.OpenPart(ctx, obj, nil)
	}
	return err
}

// Close closes what is open.
func (a *artifact) Close() error {
	if a.Artifact != nil {
		return a.Artifact.Close()
	}
	if a.first != nil {
		return a.first.Close()
	}
	return nil
}

// open opens an object of the artifact.
func (a *artifact) open(ctx context.Context, name string) (source.Object, error) {
	if name == series.ManifestName && a.first != nil {
		obj := a.first
		a.first = nil
		return obj, nil
	}
	if a.url != "" {
		return a.e.openURL(ctx, beside(a.url, name))
	}
	obj, err := openPath(ctx, filepath.Join(a.dir, name), a.in)
	if err != nil {
		return nil, err
	}
	return a.e.metered(obj), nil
}

// readOptions are options with the cache that the verb has use for.
func (a *artifact) readOptions() *series.Options {
	o := a.options()
	if o == nil {
		o = &series.Options{}
	}
	o.Cache = a.in.artifacts.cache
	if a.in.artifacts.once {
		o.CacheBytes = -1
	}
	return o
}

// options say what is known of an artifact from the path of its folder, where that is <region>/series/<generation>.
func (a *artifact) options() *series.Options {
	dir, err := filepath.Abs(a.dir)
	if a.url != "" {
		dir, err = url.PathUnescape(strings.TrimSuffix(pathOf(a.url), "/"+series.ManifestName))
	}
	if err != nil {
		return nil
	}
	steps := strings.Split(filepath.ToSlash(dir), "/")
	n := len(steps)
	if n < 3 || steps[n-2] != "series" {
		return nil
	}
	generation, err := series.ParseUUID(steps[n-1])
	if err != nil {
		return nil
	}
	region, err := strconv.ParseUint(steps[n-3], 10, 64)
	if err != nil || strconv.FormatUint(region, 10) != steps[n-3] {
		return nil
	}
	return &series.Options{Region: &region, Generation: &generation}
}

// artifactsBelow lists the folders of artifacts below a folder, in the order of their names. Folders whose names begin with a dot,
// as those of artifacts that are being written, are left out.
func artifactsBelow(root string) (dirs []string) {
	top := root + string(filepath.Separator) // which follows a link
	filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil: // what cannot be read holds none
		case d.IsDir() && path != top && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case d.Name() == series.ManifestName && !d.IsDir():
			dirs = append(dirs, filepath.Dir(path))
		}
		return nil
	})
	return dirs
}

// artifactsIn gives the URLs of the artifacts whose URLs begin with a prefix, in the order of their names.
func (e *env) artifactsIn(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for entry, err := range e.list(ctx, prefix) {
			if err == nil && !strings.HasSuffix(entry.Name, "/"+series.ManifestName) {
				continue
			}
			name := entry.Name
			if err == nil {
				name = beside(name, "")
			}
			if !yield(name, err) || err != nil {
				return
			}
		}
	}
}

// globText is a path as a pattern that takes it alone.
func globText(path string) string {
	return strings.NewReplacer(`*`, `[*]`, `?`, `[?]`, `[`, `[[]`).Replace(path)
}

// isManifest reports whether JSON text is an object whose member "format" is that of artifacts, as far as its first 64 KiB
// tell.
func isManifest(ctx context.Context, obj source.Object) (bool, error) {
	head, err := headOf(ctx, obj, 0, sniffSize)
	if err != nil || !bytes.Contains(head, []byte(series.FormatName)) {
		return false, err
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(head), jsontext.AllowDuplicateNames(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return false, nil
	}
	for {
		name, err := d.ReadToken()
		if err != nil || name.Kind() != '"' {
			return false, nil
		}
		if name.String() != "format" {
			if err := d.SkipValue(); err != nil {
				return false, nil
			}
			continue
		}
		v, err := d.ReadToken()
		return err == nil && v.Kind() == '"' && v.String() == series.FormatName, nil
	}
}

// allSeries is the range of every identifier.
var allSeries = series.Range{Last: series.ID{Table: math.MaxUint32, TSID: math.MaxUint64}}

// seriesPlace is what a path into an artifact names: a range of series, one series, or one column of them.
type seriesPlace struct {
	series.Range
	one    bool
	column string // "" all of them
	level  int    // of a path of parts: 0 the artifact, 1 a part, 2 a leaf, 3 a block; -1 for another
	at     [3]int // the part, the leaf and the block
}

// The columns that every block has.
const (
	tsidColumn     = "__tsid"
	rowCountColumn = "__series_row_count"
)

// partStep reads the step of a path that names a part.
func partStep(step string) (int, bool) {
	text, ok := strings.CutPrefix(step, "part-")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 32)
	return int(n), err == nil && strconv.FormatUint(n, 10) == text
}

// find reads a path: TABLE, TABLE/TSID, part-N, part-N/LEAF, part-N/LEAF/BLOCK, * for all, and a column behind TABLE/TSID,
// a block or *. The empty path is all.
func (a *artifact) find(ctx context.Context, path string) (s seriesPlace, err error) {
	steps, err := pathSteps(path)
	if err != nil {
		return s, err
	}
	missing := func(format string, args ...any) error {
		return fault.New(fault.NotFound, "", format, args...).On(path).In(a.Name())
	}
	n, ok := 0, false
	if len(steps) > 0 {
		n, ok = partStep(steps[0])
	}
	if ok {
		rest := steps[1:]
		part, err := a.Part(ctx, n)
		if err != nil {
			return s, fault.Locate(err, a.Name(), "", 0)
		}
		s.level, s.at[0], s.Range = 1, n, part.Range
		for len(rest) > 0 && s.level < 3 {
			i, err := strconv.ParseUint(rest[0], 10, 31)
			if err != nil {
				return s, missing("%q is no number of a leaf or a block; part-0/0/3 is a block", rest[0])
			}
			s.at[s.level] = int(i)
			if s.level == 1 {
				if int(i) >= len(part.Leaves) {
					return s, missing("leaf %d of %d", i, len(part.Leaves))
				}
				s.Range = part.Leaves[i].Range
			} else {
				blocks, err := a.Blocks(ctx, s.at[0], s.at[1])
				if err != nil {
					return s, err
				}
				if int(i) >= len(blocks) {
					return s, missing("block %d of %d", i, len(blocks))
				}
				s.Range = blocks[i].Range
			}
			s.level++
			rest = rest[1:]
		}
		if err := s.setColumn(rest, missing); err != nil {
			return s, err
		}
	} else if err := s.find(steps, missing); err != nil {
		return s, err
	}
	if s.column == "" || s.column == tsidColumn || s.column == rowCountColumn {
		return s, nil
	}
	for _, t := range a.Tags() {
		if t.Name == s.column {
			return s, nil
		}
	}
	return s, missing("there is no label %q; spile info lists them", s.column)
}

// pathSteps are the steps of a path into an artifact.
func pathSteps(path string) ([]string, error) {
	p, err := msglc.ParsePath(path)
	if err != nil {
		return nil, usagef("path %q: %s", path, message(err))
	}
	steps := make([]string, len(p))
	for i := range p {
		steps[i] = p[i].String()
	}
	return steps, nil
}

// find reads a path that names no part: TABLE, TABLE/TSID or *, and a column behind it.
func (s *seriesPlace) find(steps []string, missing func(format string, args ...any) error) error {
	s.Range = allSeries
	if len(steps) == 0 {
		return nil
	}
	rest := steps[1:]
	if steps[0] != "*" {
		s.level = -1
		table, err := strconv.ParseUint(steps[0], 10, 32)
		if err != nil {
			return missing("%q is no table and no part; 1025/10 is a series, 1025 all of a table, part-0/0/3 a block, and */NAME a label", steps[0])
		}
		s.Range = series.TableRange(uint32(table))
		if len(rest) > 0 {
			tsid, err := strconv.ParseUint(rest[0], 10, 64)
			if err != nil {
				return missing("%q is no TSID", rest[0])
			}
			id := series.ID{Table: uint32(table), TSID: tsid}
			s.Range, s.one = series.Range{First: id, Last: id}, true
			rest = rest[1:]
		}
	}
	return s.setColumn(rest, missing)
}

// setColumn takes the step that names a column, where there is one.
func (s *seriesPlace) setColumn(rest []string, missing func(format string, args ...any) error) error {
	switch len(rest) {
	case 0:
		return nil
	case 1:
		s.column = rest[0]
		return nil
	}
	return missing("%d steps more than there are levels", len(rest)-1)
}

// paths are the paths that begin with word.
func (a *artifact) paths(ctx context.Context, word string) (out []string) {
	before := word[:strings.LastIndexByte(word, '/')+1]
	place, err := a.find(ctx, strings.TrimSuffix(before, "/"))
	if err != nil || place.level < 0 || place.column != "" {
		return nil
	}
	a.each(ctx, place, func(r *partRow) error {
		if strings.HasPrefix(r.Path, word) {
			out = append(out, r.Path)
		}
		if len(out) == completeCount {
			return io.EOF
		}
		return nil
	})
	return out
}
