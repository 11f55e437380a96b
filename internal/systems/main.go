// Command systems checks that the packages named by its arguments, and all that they import, are right for systems that it
// does not run on: the types of every file that is compiled there, constants in integers of that size among them. That is
// what a compiler would refuse, in a twentieth of the time of compiling it all.
//
//	go run ./internal/systems windows/amd64,linux/386 ./...
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: systems SYSTEM/PROCESSOR,... PACKAGE...")
		os.Exit(2)
	}
	systems := strings.Split(os.Args[1], ",")
	found := make([]error, len(systems))
	done := make(chan int)
	for i, system := range systems {
		go func() {
			found[i] = check(system, os.Args[2:])
			done <- i
		}()
	}
	failed := false
	for range systems {
		i := <-done
		if found[i] != nil {
			failed = true
			fmt.Fprintf(os.Stderr, "%s:\n%v\n", systems[i], found[i])
		} else {
			fmt.Println("ok", systems[i])
		}
	}
	if failed {
		os.Exit(1)
	}
}

// listed is what go list tells of a package.
type listed struct {
	ImportPath string
	Dir        string
	Standard   bool
	GoFiles    []string
	SFiles     []string // assembly, which has the bodies that functions lack
	ImportMap  map[string]string
	Module     *struct{ GoVersion string }
}

// check checks the packages of the patterns for a system without C.
func check(system string, patterns []string) error {
	goos, goarch, ok := strings.Cut(system, "/")
	sizes := types.SizesFor("gc", goarch)
	if !ok || sizes == nil {
		return fmt.Errorf("%q is no system, such as linux/386", system)
	}
	list := exec.Command("go", append([]string{"list", "-deps", "-json=ImportPath,Dir,Standard,GoFiles,SFiles,ImportMap,Module", "--"}, patterns...)...)
	list.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	var (
		fset = token.NewFileSet()
		pkgs = imported{"unsafe": types.Unsafe}
		errs []error
	)
	// A package comes behind those that it imports.
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); err == io.EOF {
			return errors.Join(errs...)
		} else if err != nil {
			return err
		}
		if p.ImportPath == "unsafe" {
			continue
		}
		var files []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution|parser.ParseComments)
			if err != nil {
				return err
			}
			files = append(files, f)
		}
		if !p.Standard && len(p.SFiles) == 0 {
			errs = append(errs, bodies(fset, files)...)
		}
		config := types.Config{
			Importer: mapped{pkgs, p.ImportMap},
			Sizes:    sizes,
			Error:    func(err error) { errs = append(errs, err) },
		}
		if p.Module != nil {
			config.GoVersion = "go" + cmp.Or(p.Module.GoVersion, "1.16") // what go takes for a module that does not say
		}
		pkgs[p.ImportPath], _ = config.Check(p.ImportPath, fset, files, nil) // its errors have gone to config.Error
	}
}

// bodies returns an error for each function that has no body, in a package that has no assembly, unless it is linked to
// one elsewhere. The standard library, which is not asked, has some whose bodies the runtime brings.
func bodies(fset *token.FileSet, files []*ast.File) []error {
	var errs []error
	for _, f := range files {
		linked := map[string]bool{}
		for _, group := range f.Comments {
			for _, c := range group.List {
				if words := strings.Fields(c.Text); len(words) > 1 && words[0] == "//go:linkname" {
					linked[words[1]] = true
				}
			}
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body == nil && !linked[fn.Name.Name] {
				errs = append(errs, fmt.Errorf("%s: %s has no body", fset.Position(fn.Pos()), fn.Name.Name))
			}
		}
	}
	return errs
}

// imported are the packages that have been checked, by import path.
type imported map[string]*types.Package

// mapped imports them into one package, which may mean another path than it says: the standard library has packages of its
// own for those of golang.org/x.
type mapped struct {
	imported
	paths map[string]string
}

func (m mapped) Import(path string) (*types.Package, error) {
	if p := m.imported[cmp.Or(m.paths[path], path)]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s is not listed before the package that imports it", path)
}
