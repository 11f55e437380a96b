package series

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spilehq/spile/fault"
)

const vectorFolder = "../testdata/series"

// recordJSON is a series as the vectors have it.
type recordJSON struct {
	Table    uint32             `json:"table_id"`
	TSID     uint64             `json:"tsid"`
	RowCount uint64             `json:"row_count"`
	Labels   map[string]*string `json:"labels"`
}

// record gives the labels in the order of the tags.
func (r recordJSON) record(tags []Tag) Record {
	out := Record{ID: ID{r.Table, r.TSID}, RowCount: r.RowCount, Labels: []Label{}}
	for _, t := range tags {
		if v := r.Labels[t.Name]; v != nil {
			out.Labels = append(out.Labels, Label{t.Name, *v})
		}
	}
	return out
}

// vector is a conformance artifact; testdata/series/README.md says what the members mean.
type vector struct {
	Name, Path   string
	Meta         json.RawMessage
	Options      map[string]any
	Input        []recordJSON
	InputFile    string
	Records      []recordJSON
	RecordsFile  string
	Build        bool
	Identical    bool
	Parts        int
	Warnings     []int
	UnknownCodec []string
	Lookups      []struct {
		Table       uint32 `json:"table_id"`
		TSID        uint64
		Record      *recordJSON
		RecordIndex *int
	}
	Selects    []selectJSON
	Check      int
	Class, Why string
	AlsoAccept []string
	folder     string
}

func readVector(t testing.TB, file string) *vector {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	v := &vector{}
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatal(file, ": ", err)
	}
	v.folder = filepath.Join(strings.TrimSuffix(file, ".json"), v.Path)
	lines := func(name string) (out []recordJSON) {
		f, err := os.Open(filepath.Join(filepath.Dir(file), name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		for d := json.NewDecoder(z); ; {
			var r recordJSON
			if err := d.Decode(&r); err == io.EOF {
				return out
			} else if err != nil {
				t.Fatal(name, err)
			}
			out = append(out, r)
		}
	}
	if v.RecordsFile != "" {
		v.Records = lines(v.RecordsFile)
	}
	if v.InputFile != "" {
		v.Input = lines(v.InputFile)
	}
	return v
}

func vectors(t testing.TB, pattern string, least int) []*vector {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(vectorFolder, pattern))
	if err != nil || len(names) < least {
		t.Fatal(err, len(names))
	}
	var out []*vector
	for _, name := range names {
		out = append(out, readVector(t, name))
	}
	return out
}

func sameRecord(a, b Record) bool {
	return a.ID == b.ID && a.RowCount == b.RowCount && slices.Equal(a.Labels, b.Labels)
}

func TestReadVectors(t *testing.T) {
	ctx := context.Background()
	for _, v := range vectors(t, "*.json", 40) {
		t.Run(v.Name, func(t *testing.T) {
			a, err := Open(ctx, Folder(v.folder), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			if v.Parts != len(a.Manifest().Files) {
				t.Errorf("%d parts, want %d", len(a.Manifest().Files), v.Parts)
			}
			i := 0
			var failed error
			for r, err := range a.Records(ctx, everything) {
				if err != nil {
					failed = err
					break
				}
				if i >= len(v.Records) || !sameRecord(r, v.Records[i].record(a.Tags())) {
					t.Fatalf("record %d is %+v, want %+v", i, r, v.Records[min(i, len(v.Records)-1)].record(a.Tags()))
				}
				i++
			}
			if len(v.UnknownCodec) > 0 {
				if !errors.Is(failed, fault.UnsupportedCodec) || Check(failed) != 40 {
					t.Errorf("a column of an unknown codec: %v", failed)
				}
				return
			}
			if failed != nil {
				t.Fatal(failed)
			}
			if i != len(v.Records) {
				t.Errorf("%d records, want %d", i, len(v.Records))
			}
			for _, l := range v.Lookups {
				got, err := a.Lookup(ctx, ID{l.Table, l.TSID})
				want := l.Record
				if l.RecordIndex != nil {
					want = &v.Records[*l.RecordIndex]
				}
				switch {
				case want == nil:
					if !errors.Is(err, fault.NotFound) {
						t.Errorf("%d/%d: %v, %v, want none", l.Table, l.TSID, got, err)
					}
				case err != nil || !sameRecord(got, want.record(a.Tags())):
					t.Errorf("%d/%d: %v, %v, want %v", l.Table, l.TSID, got, err, want.record(a.Tags()))
				}
			}
		})
	}
}

var classes = map[string]error{
	"corrupt": fault.Corrupt, "unsupported version": fault.UnsupportedVersion, "unsupported codec": fault.UnsupportedCodec,
	"limit exceeded": fault.Limit,
}

// A bad artifact fails when all of it is read, with the class that it says; those that only the verifier finds are for its
// test.
func TestBadVectors(t *testing.T) {
	ctx := context.Background()
	for _, v := range vectors(t, "bad/*.json", 50) {
		t.Run(v.Name, func(t *testing.T) {
			err := readAll(ctx, v.folder)
			if v.Check >= 78 && v.Check <= 81 {
				if err != nil {
					t.Errorf("%v: a reader does not look at check %d", err, v.Check)
				}
				return
			}
			if v.Check == 82 {
				if !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("a missing part: %v", err)
				}
				return
			}
			ok := false
			for _, class := range append(v.AlsoAccept, v.Class) {
				ok = ok || errors.Is(err, classes[class])
			}
			if !ok {
				t.Errorf("%v, want check %d, %s: %s", err, v.Check, v.Class, v.Why)
			} else if Check(err) != v.Check {
				t.Logf("check %d, want %d: %v", Check(err), v.Check, err)
			}
			var f *fault.Error
			if errors.As(err, &f); f != nil && f.Object == "" {
				t.Errorf("no file is named: %v", err)
			}
		})
	}
}

// A query that reads the column of a damaged chunk refuses it by the check of reading all, whatever part of it leads to the answer.
func TestBadChunks(t *testing.T) {
	ctx := t.Context()
	asked := 0
	for _, v := range vectors(t, "bad/*.json", 50) {
		err := readAll(ctx, v.folder)
		if Check(err) < 70 || Check(err) > 77 {
			continue
		}
		_, column, ok := strings.Cut(err.Error(), ", column ")
		if column, _, _ = strings.Cut(column, ":"); !ok || strings.HasPrefix(column, "__") {
			continue
		}
		// Of nulls and one value, statistics decide neither of the two.
		for _, pattern := range []string{".+", "(zz.*)?"} {
			m, err := NewMatcher(Regexp, column, pattern)
			if err != nil {
				t.Fatal(err)
			}
			for _, cache := range []int64{0, -1} {
				a, err := Open(ctx, Folder(v.folder), &Options{CacheBytes: cache})
				if err != nil {
					t.Fatal(err)
				}
				if n, err := a.Count(ctx, &Query{Matchers: []*Matcher{m}}); Check(err) != v.Check {
					t.Errorf("%s, count of %s=~%q: %d, %v, want check %d", v.Name, column, pattern, n, err, v.Check)
				}
				a.Close()
				asked++
			}
		}
	}
	if asked < 20 {
		t.Errorf("%d questions about a damaged tag", asked)
	}
}

func readAll(ctx context.Context, folder string) error {
	a, err := Open(ctx, Folder(folder), nil)
	if err != nil {
		return err
	}
	defer a.Close()
	for _, err := range a.Records(ctx, everything) {
		if err != nil {
			return err
		}
	}
	return nil
}

// The manifest is written with all members, in the order of the format, and read back as it was.
func TestManifestRoundTrip(t *testing.T) {
	for _, v := range vectors(t, "*.json", 40) {
		text, err := os.ReadFile(filepath.Join(v.folder, ManifestName))
		if err != nil {
			t.Fatal(err)
		}
		m, err := ParseManifest(text)
		if err != nil {
			t.Fatal(v.Name, ": ", err)
		}
		out, err := m.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseManifest(out)
		if err != nil {
			t.Fatalf("%s: %v\n%s", v.Name, err, out)
		}
		twice, err := again.AppendJSON(nil)
		if err != nil || !bytes.Equal(out, twice) {
			t.Errorf("%s: written again\n%s\nwas\n%s", v.Name, twice, out)
		}
		if len(m.Files) != len(again.Files) || !slices.Equal(m.Files, again.Files) || !slices.Equal(m.Tags, again.Tags) {
			t.Errorf("%s: %+v came back as %+v", v.Name, m, again)
		}
	}
}
