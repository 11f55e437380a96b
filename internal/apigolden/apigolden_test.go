package apigolden

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

const spile = "github.com/spilehq/spile"

// TestExportedSurface compares the exported declarations of every package of the library, and of the adapters, with the
// file that lists them.
func TestExportedSurface(t *testing.T) {
	listed := make(map[string]bool)
	for _, name := range publicPackages(t) {
		file := strings.ReplaceAll(name, "/", "-") + ".txt"
		listed[file] = true
		golden := filepath.Join("testdata", file)
		got := surface(t, name)
		if *update {
			if err := os.MkdirAll("testdata", 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(golden, got, 0o666); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := difference(want, got); diff != "" {
			t.Errorf("the exported surface of %s is not the one listed (go test ./internal/apigolden -update lists it anew):\n%s", name, diff)
		}
	}
	files, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !listed[f.Name()] {
			t.Errorf("testdata/%s lists a package that is not there", f.Name())
		}
	}
}

// publicPackages are the folders of the library module, and of that of the adapters, that hold a package others can import.
func publicPackages(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, module := range []string{".", "adapters"} {
		root := filepath.Join("../..", module)
		err := filepath.WalkDir(root, func(dir string, e fs.DirEntry, err error) error {
			if err != nil || !e.IsDir() || dir == root {
				return err
			}
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil || e.Name() == "internal" || e.Name() == "testdata" || strings.HasPrefix(e.Name(), ".") {
				return fs.SkipDir
			}
			if p, err := build.ImportDir(dir, 0); err == nil && p.Name != "main" {
				name, err := filepath.Rel("../..", dir)
				names = append(names, filepath.ToSlash(name))
				return err
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return names
}

// surface prints the exported declarations of a package as Linux has them, without comments, sorted by name.
func surface(t *testing.T, name string) []byte {
	t.Helper()
	dir := filepath.Join("../..", name)
	env := build.Default
	env.GOOS, env.GOARCH, env.CgoEnabled = "linux", "amd64", false
	pkg, err := env.ImportDir(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, file := range pkg.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(dir, file), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(fset, files, spile+"/"+name)
	if err != nil {
		t.Fatal(err)
	}
	var decls []string
	add := func(recv string, node ast.Node) {
		var b bytes.Buffer
		if err := printer.Fprint(&b, fset, bare(node)); err != nil {
			t.Fatal(err)
		}
		decls = append(decls, recv+"\x00"+plain(b.String()))
	}
	values := func(list []*doc.Value) {
		for _, v := range list {
			add("", v.Decl)
		}
	}
	functions := func(recv string, list []*doc.Func) {
		for _, f := range list {
			add(recv, f.Decl)
		}
	}
	values(p.Consts)
	values(p.Vars)
	functions("", p.Funcs)
	for _, typ := range p.Types {
		add(typ.Name, typ.Decl)
		values(typ.Consts)
		values(typ.Vars)
		functions("", typ.Funcs)
		functions(typ.Name, typ.Methods)
	}
	slices.Sort(decls)
	var out bytes.Buffer
	fmt.Fprintf(&out, "package %s\n\n", p.Name)
	for _, d := range decls {
		_, text, _ := strings.Cut(d, "\x00")
		fmt.Fprintln(&out, text)
	}
	return out.Bytes()
}

// bare returns a declaration without its comments and bodies.
func bare(node ast.Node) ast.Node {
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			n.Doc, n.Body = nil, nil
		case *ast.GenDecl:
			n.Doc = nil
		case *ast.ValueSpec:
			n.Doc, n.Comment = nil, nil
		case *ast.TypeSpec:
			n.Doc, n.Comment = nil, nil
		case *ast.Field:
			n.Doc, n.Comment = nil, nil
		}
		return true
	})
	return node
}

var (
	blankLines = regexp.MustCompile(`\n\s*\n`)
	spaces     = regexp.MustCompile(`[ \t]+`)
)

// plain takes out what changes with neighbours: the alignment and the empty lines.
func plain(text string) string {
	for blankLines.MatchString(text) {
		text = blankLines.ReplaceAllString(text, "\n")
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		indent := line[:len(line)-len(strings.TrimLeft(line, "\t"))]
		b.WriteString(indent + spaces.ReplaceAllString(strings.TrimSpace(line), " ") + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// difference lists the lines that only one of two texts has.
func difference(want, got []byte) string {
	a, b := strings.Split(string(want), "\n"), strings.Split(string(got), "\n")
	var out strings.Builder
	for _, line := range a {
		if !slices.Contains(b, line) {
			fmt.Fprintln(&out, "-", line)
		}
	}
	for _, line := range b {
		if !slices.Contains(a, line) {
			fmt.Fprintln(&out, "+", line)
		}
	}
	if out.Len() == 0 && !bytes.Equal(want, got) {
		return "the order differs\n"
	}
	return out.String()
}
