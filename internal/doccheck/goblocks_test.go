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

// TestGoBlocks: the Go code of the README compiles, as the body of a function that has a context and returns an error.
func TestGoBlocks(t *testing.T) {
	blocks := goBlock.FindAllStringSubmatch(read(t, filepath.Join(root, "README.md")), -1)
	if blocks == nil {
		t.Fatal("no Go code")
	}
	for _, m := range blocks {
		file := filepath.Join(t.TempDir(), "main.go")
		code := "package main\n\nimport (\n\t\"context\"\n\n"
		for _, name := range []string{"msglc", "source", "value"} {
			if strings.Contains(m[1], name+".") {
				code += "\t\"github.com/spilehq/spile/" + name + "\"\n"
			}
		}
		code += ")\n\nfunc run(ctx context.Context) error {\n" + m[1] + "\treturn err\n}\n\nfunc main() { _ = run(context.Background()) }\n"
		if err := os.WriteFile(file, []byte(code), 0o666); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("go", "vet", file)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s\n%s", err, out, code)
		}
	}
}
