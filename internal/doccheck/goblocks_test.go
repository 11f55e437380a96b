package doccheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

var prints = regexp.MustCompile(`(?m)// prints (.*)$`)

// TestGoBlocks: a program in the README prints what it says; other Go code there compiles, as the body of a function
// that has a context and returns an error.
func TestGoBlocks(t *testing.T) {
	blocks := goBlock.FindAllStringSubmatch(read(t, filepath.Join(root, "README.md")), -1)
	if blocks == nil {
		t.Fatal("no Go code")
	}
	for _, m := range blocks {
		if strings.HasPrefix(m[1], "package main\n") {
			runProgram(t, m[1])
			continue
		}
		code := "package main\n\nimport (\n\t\"context\"\n\n"
		for _, name := range []string{"msglc", "source", "value"} {
			if strings.Contains(m[1], name+".") {
				code += "\t\"github.com/spilehq/spile/" + name + "\"\n"
			}
		}
		code += ")\n\nfunc run(ctx context.Context) error {\n" + m[1] + "\treturn err\n}\n\nfunc main() { _ = run(context.Background()) }\n"
		goTool(t, code, "vet")
	}
}

// runProgram runs a program in an empty folder.
func runProgram(t *testing.T, code string) {
	bin := filepath.Join(t.TempDir(), "program")
	goTool(t, code, "vet")
	goTool(t, code, "build", "-o", bin)
	cmd := exec.Command(bin)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if want := prints.FindStringSubmatch(code); err != nil || want == nil || strings.TrimSpace(string(out)) != want[1] {
		t.Errorf("%v\n%s\n%s", err, out, code)
	}
}

// goTool runs a verb of the go command on a program.
func goTool(t *testing.T, code string, args ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(code), 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", append(args, file)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, out, code)
	}
}
