package main

import (
	"os"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "-mod=mod")
	for name, text := range map[string]string{
		"go.mod":     "module m\n\ngo 1.24\n",
		"a.go":       "package m\n\nimport \"strconv\"\n\nconst large = 1 << 40\n\nfunc f() (string, int) { return strconv.Itoa(n), large }\n",
		"windows.go": "//go:build windows\n\npackage m\n\nvar n = 1\n\nfunc missing()\n",
		"others.go":  "//go:build !windows && !plan9\n\npackage m\n\nvar n = 1\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ system, want string }{
		{"darwin/arm64", ""},
		{"linux/386", "a.go:7:50: cannot use large (untyped int constant 1099511627776) as int value in return statement (overflows)"},
		{"windows/amd64", "windows.go:7:1: missing has no body"},
		{"plan9/amd64", "a.go:7:46: undefined: n"},
		{"linux/vax", `"linux/vax" is no system, such as linux/386`},
		{"linux", `"linux" is no system, such as linux/386`},
	} {
		got := ""
		if err := check(tt.system, []string{"./..."}); err != nil {
			got = strings.ReplaceAll(err.Error(), dir+string(os.PathSeparator), "")
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.system, got, tt.want)
		}
	}
	if err := check("linux/386", []string{"./none"}); err == nil || !strings.HasPrefix(err.Error(), "go list: ") {
		t.Errorf("no package: %v", err)
	}
}
