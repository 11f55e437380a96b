package series

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func listFolder(dir string) func(context.Context) ([]string, error) {
	return func(context.Context) ([]string, error) {
		entries, err := os.ReadDir(dir)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names, err
	}
}

func verified(t *testing.T, folder string) (faults, warnings []int, texts []string) {
	t.Helper()
	err := Verify(context.Background(), Folder(folder), &VerifyOptions{Full: true, List: listFolder(folder)}, func(f Finding) {
		if f.Warning || f.Undecodable {
			warnings = append(warnings, f.Check)
		} else {
			faults = append(faults, f.Check)
		}
		texts = append(texts, f.Err.Error())
		if f.Err.Object == "" {
			t.Errorf("no object: %v", f.Err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(warnings)
	return faults, slices.Compact(warnings), texts
}

func TestVerifyVectors(t *testing.T) {
	for _, v := range vectors(t, "*.json", 40) {
		faults, warnings, texts := verified(t, v.folder)
		if len(faults) > 0 {
			t.Errorf("%s: %q", v.Name, texts)
		}
		want := slices.Clone(v.Warnings)
		slices.Sort(want)
		if !slices.Equal(warnings, slices.Compact(want)) {
			t.Errorf("%s: warnings of the checks %d, want %d: %q", v.Name, warnings, want, texts)
		}
	}
	for _, v := range vectors(t, "bad/*.json", 50) {
		faults, _, texts := verified(t, v.folder)
		if !slices.Contains(faults, v.Check) {
			t.Errorf("bad/%s: checks %d, want %d: %s\n%q", v.Name, faults, v.Check, v.Why, texts)
		}
	}
}

// What a writer makes has no finding at all.
func TestVerifyWritten(t *testing.T) {
	for _, v := range vectors(t, "*.json", 40) {
		if !v.Build {
			continue
		}
		for _, zip := range []bool{false, true} {
			o := v.options()
			o.Zstd = zip
			target, err := v.write(t, t.TempDir(), o)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, texts := verified(t, target.Dir()); len(texts) > 0 && !slices.Contains(v.Warnings, 85) {
				t.Errorf("%s: %q", v.Name, texts)
			}
			for k := range v.Parts {
				if _, err := os.Stat(filepath.Join(target.Dir(), PartName(uint32(k)))); err != nil && !zip {
					t.Error(err)
				}
			}
		}
	}
}
