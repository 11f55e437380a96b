package main

import (
	"bytes"
	"testing"
)

// TestSideBySideOrder: what is said of objects that are read side by side comes in the order of their names, whichever is
// read first.
func TestSideBySideOrder(t *testing.T) {
	var said bytes.Buffer
	e := &env{stderr: &said, shared: &shared{}}
	second := make(chan struct{})
	names := func(yield func(string, error) bool) { _ = yield("a", nil) && yield("b", nil) }
	err := e.sideBySide(t.Context(), names, func(f *env, name string) error {
		if name == "a" {
			<-second
		} else {
			defer close(second)
		}
		f.say("note: %s", name)
		return nil
	}, func(r *oneOf) error {
		e.say("read: %s", r.name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := said.String(), "spile: note: a\nspile: read: a\nspile: note: b\nspile: read: b\n"; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
}
