package tcb

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

func testKey(first byte) []byte {
	key := make([]byte, KeySize)
	for i := range key {
		key[i] = first + byte(i)
	}
	return key
}

func vectorFile(t *testing.T, name string) []byte {
	t.Helper()
	for _, v := range vectors(t, "*.json") {
		if v.Name == name {
			return v.file
		}
	}
	t.Fatal("no vector ", name)
	return nil
}

// The four combinations of the two layers are those of the conformance files, and each comes off again.
func TestSeal(t *testing.T) {
	plain := vectorFile(t, "SecondTable")
	for name, keys := range map[string]Keys{
		"SecondTable":               {},
		"SecondTable-sealed":        {Encryption: testKey(0)},
		"SecondTable-signed":        {MAC: testKey(0x40)},
		"SecondTable-sealed-signed": {testKey(0), testKey(0x40)},
	} {
		got, err := Seal(plain, keys)
		if err != nil {
			t.Fatal(err)
		}
		if want := vectorFile(t, name); !bytes.Equal(got, want) {
			t.Errorf("%s is % x\nwant % x", name, got, want)
		}
		sealed := bytes.Clone(got)
		back, err := Unseal(got, &Options{Keys: keys})
		if err != nil || !bytes.Equal(back, plain) {
			t.Errorf("%s opened is % x, %v", name, back, err)
		}
		if !bytes.Equal(got, sealed) {
			t.Error("opening changed the file that it was given")
		}
		p, err := ReadProtection(context.Background(), source.Memory(name, got))
		if want := (Protection{len(keys.Encryption) > 0, len(keys.MAC) > 0, false}); err != nil || p != want {
			t.Errorf("%s: %+v, want %+v", name, p, want)
		}
		if len(keys.Encryption)+len(keys.MAC) > 0 {
			if _, err := Seal(got, keys); err == nil {
				t.Errorf("%s was sealed twice", name)
			}
		}
	}
}

// The decision table of docs/format/tcb.md, "Opening".
func TestOpenDecisions(t *testing.T) {
	plain := vectorFile(t, "SecondTable")
	signed := vectorFile(t, "SecondTable-signed")
	altered := bytes.Clone(signed)
	altered[len(altered)-1] ^= 2
	for _, c := range []struct {
		what string
		file []byte
		key  []byte
		skip bool
		want string // the check, "" to read
	}{
		{"no MAC, no key", plain, nil, false, ""},
		{"no MAC, empty key", plain, []byte{}, false, ""},
		{"no MAC, a key", plain, testKey(0x40), false, "O4"},
		{"a MAC, its key", signed, testKey(0x40), false, ""},
		{"a MAC, another key", signed, testKey(0x41), false, "O5"},
		{"a MAC, a short key", signed, testKey(0x40)[:31], false, "O3"},
		{"a wrong MAC, its key", altered, testKey(0x40), false, "O5"},
		{"a wrong MAC, no key", altered, nil, false, ""},
		{"a wrong MAC, unchecked", altered, testKey(0x40), true, ""},
		{"no MAC, unchecked", plain, testKey(0x40), true, ""},
	} {
		table, err := Open(context.Background(), source.Memory("t.tcb", c.file), &Options{Keys: Keys{MAC: c.key}, SkipMAC: c.skip})
		if Check(err) != c.want {
			t.Errorf("%s: %v, want %s", c.what, err, c.want)
		}
		if err == nil && table.Protection().Verified != (len(c.key) > 0 && !c.skip) {
			t.Errorf("%s: verified is %t", c.what, table.Protection().Verified)
		}
	}
}

func TestSealRefusesKeys(t *testing.T) {
	plain := vectorFile(t, "SecondTable")
	for _, keys := range []Keys{
		{Encryption: testKey(0)[:31]}, {MAC: make([]byte, 33)}, {testKey(0), testKey(0)},
	} {
		if _, err := Seal(plain, keys); !errors.Is(err, fault.Invalid) {
			t.Errorf("keys of %d and %d bytes: %v", len(keys.Encryption), len(keys.MAC), err)
		}
		if _, err := Append(nil, 0, nil, &WriteOptions{Keys: keys}); !errors.Is(err, fault.Invalid) {
			t.Errorf("keys of %d and %d bytes: %v", len(keys.Encryption), len(keys.MAC), err)
		}
	}
}

// A file whose descriptors have counts is never written: sealed, signed and opened it has none, and is the same table.
func TestSealLeavesCountsOut(t *testing.T) {
	counted, plain := vectorFile(t, "printed-example-76"), vectorFile(t, "SecondTable")
	for _, keys := range []Keys{{}, {Encryption: testKey(0)}, {MAC: testKey(0x40)}, {testKey(0), testKey(0x40)}} {
		got, err := Seal(counted, keys)
		if err != nil {
			t.Fatal(err)
		}
		if want, err := Seal(plain, keys); err != nil || !bytes.Equal(got, want) {
			t.Errorf("sealed: % x, %v\nwant % x", got, err, want)
		}
		// One that another program has sealed with its counts.
		stored := bytes.Clone(counted)
		if err := seal(stored, keys); err != nil {
			t.Fatal(err)
		}
		if back, err := Unseal(stored, &Options{Keys: keys}); err != nil || !bytes.Equal(back, plain) {
			t.Errorf("opened: % x, %v\nwant % x", back, err, plain)
		}
	}
}
