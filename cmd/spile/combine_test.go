package main

import (
	"errors"
	"testing"
)

func TestParseParts(t *testing.T) {
	for arg, want := range map[string]part{
		"a.msg":            {file: "a.msg"},
		"x=a.msg":          {"x", true, "a.msg"},
		"x=a=b":            {"x", true, "a=b"},
		"=a.msg":           {"", true, "a.msg"},
		"x=./a=b":          {"x", true, "./a=b"},
		"a/b=c":            {"a/b", true, "c"},
		"./a=b":            {file: "./a=b"},
		"../a=b":           {file: "../a=b"},
		"/tmp/a=b":         {file: "/tmp/a=b"},
		"https://h/a?b=c":  {file: "https://h/a?b=c"},
		"x=https://h/?b=c": {"x", true, "https://h/?b=c"},
		"-":                {file: "-"},
	} {
		if got := parsePart(arg); got != want {
			t.Errorf("%q: %+v, want %+v", arg, got, want)
		}
	}
	for _, args := range [][]string{{"a", "x=b"}, {"x=a", "b"}, {"x=a", "x=b"}, {"=a", "=b"}, {"x="}, {"a", "b", "y=c"}, {"n\xff=a"}} {
		var wrong usageError
		if _, err := parseParts(args); !errors.As(err, &wrong) {
			t.Errorf("%q: %v", args, err)
		}
	}
	for _, args := range [][]string{{"a", "a"}, {"=a", "x=a"}, {"./x=a", "b"}} {
		if _, err := parseParts(args); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
}
