package doccheck

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// consolePages are the pages whose console blocks are run: what stands behind "$ " is given to the shell, in one folder
// for each page, and the output must be what stands below.
var consolePages = []string{"README.md", "docs/guides/documents.md", "docs/guides/tables.md", "docs/guides/evolution.md", "docs/guides/series.md"}

var (
	consoleBlock = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")
	elapsed      = regexp.MustCompile(`"elapsed_ms":[0-9.]+`)
)

func TestConsoleBlocks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a POSIX shell")
	}
	if _, err := os.Stat(filepath.Join(root, "cmd/spile")); err != nil {
		t.Skip("the command is not beside the library")
	}
	files(t, "*.go")
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(bin, "spile"), "./cmd/spile")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, name := range consolePages {
		t.Run(name, func(t *testing.T) {
			path, dir := filepath.Join(root, name), t.TempDir()
			page := read(t, path)
			got := consoleBlock.ReplaceAllStringFunc(page, func(block string) string {
				return "```console\n" + runConsole(t, dir, consoleBlock.FindStringSubmatch(block)[1]) + "```"
			})
			switch {
			case elapsed.ReplaceAllString(got, "") == elapsed.ReplaceAllString(page, ""):
			case *update:
				if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
			default:
				a, b := strings.Split(page, "\n"), strings.Split(got, "\n")
				for i := range min(len(a), len(b)) {
					if elapsed.ReplaceAllString(a[i], "") != elapsed.ReplaceAllString(b[i], "") {
						t.Fatalf("%s:%d:\n page %s\n run  %s\ngo test ./internal/doccheck -update writes what was run", name, i+1, a[i], b[i])
					}
				}
				t.Fatalf("%s has %d lines, the run gives %d", name, len(a), len(b))
			}
		})
	}
}

// runConsole runs the commands of a block and returns the block as it should be. A command goes on in the lines below
// it as long as they end in a backslash.
func runConsole(t *testing.T, dir, block string) string {
	t.Helper()
	var out strings.Builder
	lines := strings.SplitAfter(block, "\n")
	for i := 0; i < len(lines); i++ {
		command, ok := strings.CutPrefix(lines[i], "$ ")
		if !ok {
			continue // output of the command before
		}
		for strings.HasSuffix(command, "\\\n") && i+1 < len(lines) {
			i++
			command += lines[i]
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, "sh", "-c", command)
		cmd.Dir = dir
		result, err := cmd.CombinedOutput()
		cancel()
		if err != nil {
			t.Errorf("%s%s%v", command, result, err)
		}
		if len(result) > 0 && result[len(result)-1] != '\n' {
			result = append(result, '\n')
		}
		out.WriteString("$ " + command)
		out.Write(result)
	}
	return out.String()
}
