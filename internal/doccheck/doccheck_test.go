package doccheck

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// files returns the files of the repository whose name matches the pattern.
func files(t *testing.T, pattern string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if ok, _ := filepath.Match(pattern, d.Name()); err == nil && ok && d.Type().IsRegular() {
			found = append(found, path)
			// A look at the file, so that a result that go test has kept is not taken for the one of another file.
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatalf("no file %s", pattern)
	}
	return found
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var fence = regexp.MustCompile("(?ms)^```.*?^```[ \t]*$")

// headings returns the headings of a page.
func headings(page string) []string {
	var out []string
	for line := range strings.Lines(fence.ReplaceAllString(page, "")) {
		if text := strings.TrimLeft(line, "#"); len(text) < len(line) && strings.HasPrefix(text, " ") {
			out = append(out, strings.TrimSpace(text))
		}
	}
	return out
}

// anchor is the fragment that leads to a heading.
func anchor(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(heading) {
		switch {
		case r == ' ' || r == '-':
			b.WriteByte('-')
		case r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 127:
			b.WriteRune(r)
		}
	}
	return b.String()
}

var (
	commentBreak = regexp.MustCompile(`\s*\n\s*//\s*`)
	reference    = regexp.MustCompile(`docs/[\w/.-]+\.md`)
	section      = regexp.MustCompile(`^, ("[^"]+"(?: and "[^"]+")*)`)
	quoted       = regexp.MustCompile(`"[^"]+"`)
)

// TestReferences: the pages and sections that Go files name exist.
func TestReferences(t *testing.T) {
	for _, path := range files(t, "*.go") {
		if strings.Contains(path, "doccheck") {
			continue
		}
		text := commentBreak.ReplaceAllString(read(t, path), " ")
		for _, at := range reference.FindAllStringIndex(text, -1) {
			page, err := os.ReadFile(filepath.Join(root, text[at[0]:at[1]]))
			if err != nil {
				t.Errorf("%s names %s, which is not there", path, text[at[0]:at[1]])
				continue
			}
			m := section.FindStringSubmatch(text[at[1]:])
			if m == nil {
				continue
			}
			for _, name := range quoted.FindAllString(m[1], -1) {
				name = strings.Trim(name, `"`)
				found := false
				for _, h := range headings(string(page)) {
					found = found || h == name
				}
				if !found {
					t.Errorf("%s names section %q of %s, which is not there", path, name, text[at[0]:at[1]])
				}
			}
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinks: what pages link to inside the repository exists.
func TestLinks(t *testing.T) {
	for _, path := range files(t, "*.md") {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(read(t, path), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			name, fragment, _ := strings.Cut(m[1], "#")
			target := path
			if name != "" {
				target = filepath.Join(filepath.Dir(path), name)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", path, m[1])
				continue
			}
			if fragment == "" {
				continue
			}
			found := false
			for _, h := range headings(read(t, target)) {
				found = found || anchor(h) == fragment
			}
			if !found {
				t.Errorf("%s links to %s, and there is no such heading", path, m[1])
			}
		}
	}
}
