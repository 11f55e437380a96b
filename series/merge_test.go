package series

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spilehq/spile/fault"
)

func TestMergeVectors(t *testing.T) {
	ctx := context.Background()
	names, err := filepath.Glob(filepath.Join(vectorFolder, "merges", "*.json"))
	if err != nil || len(names) < 3 {
		t.Fatal(err, names)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var v struct {
			Inputs    []string
			Conflict  json.RawMessage
			Tags      []Tag
			Records   []recordJSON
			KeepFirst struct {
				Conflicts int64
				Tags      []Tag
				Records   []recordJSON
			}
		}
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			var inputs []*Artifact
			for _, in := range v.Inputs {
				a, err := Open(ctx, Folder(readVector(t, filepath.Join(vectorFolder, in+".json")).folder), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer a.Close()
				inputs = append(inputs, a)
			}
			run := func(keepFirst bool) ([]Record, *Merger, error) {
				m, err := NewMerger(inputs, keepFirst)
				if err != nil {
					return nil, nil, err
				}
				var out []Record
				for r, err := range m.Select(ctx, &Query{Mode: Native}) {
					if err != nil {
						return nil, m, err
					}
					out = append(out, r)
				}
				return out, m, nil
			}
			got, m, err := run(false)
			conflict := len(v.Conflict) > 0 && string(v.Conflict) != "null"
			if conflict {
				if !errors.Is(err, fault.Conflict) {
					t.Fatalf("%v, want a conflict: %s", err, v.Conflict)
				}
				if got, m, err = run(true); err == nil && m.Conflicts() != v.KeepFirst.Conflicts {
					t.Errorf("%d conflicts, want %d", m.Conflicts(), v.KeepFirst.Conflicts)
				}
				v.Tags, v.Records = v.KeepFirst.Tags, v.KeepFirst.Records
			}
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(m.Tags(), v.Tags) {
				t.Errorf("the tags are %v, want %v", m.Tags(), v.Tags)
			}
			var want []Record
			for _, r := range v.Records {
				want = append(want, r.record(v.Tags))
			}
			if !slices.EqualFunc(got, want, sameRecord) {
				t.Errorf("%d records, want %d\n%v\n%v", len(got), len(want), got, want)
			}
		})
	}
}
