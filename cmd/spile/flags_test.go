package main

import "testing"

func TestSize(t *testing.T) {
	for text, want := range map[string]size{
		"0": 0, "4096": 4096, "64K": 65536, "64k": 65536, "64KiB": 65536, "64KB": 64000, "1.5M": 1572864, "2GB": 2e9,
		"1TiB": 1 << 40, "7b": 7, "9223372036854775807": 1<<63 - 1,
	} {
		var s size
		if err := s.Set(text); err != nil || s != want {
			t.Errorf("%q: %d, %v, want %d", text, s, err, want)
		}
	}
	for _, text := range []string{"", "-1", "K", "1.5", "1e3", "0x10", "1e3K", "NaN", "infK", "9223372036854775808", "9000000TiB", "1 K"} {
		var s size
		if err := s.Set(text); err == nil {
			t.Errorf("%q: %d", text, s)
		}
	}
}

// TestNoOverwrite: every verb that has -o has --no-overwrite.
func TestNoOverwrite(t *testing.T) {
	with := 0
	for _, verb := range verbs(newRoot(new(env))) {
		if verb.Flags().Lookup("output") == nil {
			continue
		}
		with++
		if verb.Flags().Lookup("no-overwrite") == nil {
			t.Errorf("%s has no --no-overwrite", verb.CommandPath())
		}
	}
	if with < 10 {
		t.Errorf("%d verbs with -o", with)
	}
}
