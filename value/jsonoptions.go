package value

import (
	"slices"

	"github.com/spilehq/spile/fault"
)

// JSONOptions says how values become JSON text where JSON has no form for them. The zero value refuses everything that
// would be lost or read back as something else, save for what the comment of [JSONWriter] calls a loss.
type JSONOptions struct {
	NonFinite   NonFiniteMode // NaN and the infinities
	InvalidUTF8 UTF8Mode      // strings, keys among them, that are not UTF-8
	Keys        KeyMode       // keys that are not strings
	Dup         DupMode       // keys that occur twice in one map
	Lossless    bool          // the first loss is an error of class fault.Invalid
	Pretty      bool          // a line for each item, indented by two blanks for each level
}

// NonFiniteMode says what NaN and the infinities become.
type NonFiniteMode uint8

// The ways to write NaN and the infinities.
const (
	NonFiniteError  NonFiniteMode = iota // an error of class fault.Invalid
	NonFiniteNull                        // null, a loss
	NonFiniteString                      // "NaN", "Infinity", "-Infinity"
)

// UTF8Mode says what strings that are not valid UTF-8 become.
type UTF8Mode uint8

// The ways to write strings that are not valid UTF-8.
const (
	UTF8Error   UTF8Mode = iota // an error of class fault.Corrupt
	UTF8Replace                 // U+FFFD for each byte that belongs to no character, a loss
)

// KeyMode says what keys that are not strings become.
type KeyMode uint8

// The ways to write keys that are not strings. A CBOR tag before a string changes nothing about its being one.
const (
	KeysError  KeyMode = iota // an error of class fault.Invalid
	KeysString                // the JSON text of the key as a string, a loss: 7 is "7", null is "null"
	KeysPairs                 // a map that has such a key is written [[key,value],…]
)

// DupMode says what happens to keys that occur twice in one map. Two keys are the same when their JSON texts are.
type DupMode uint8

// The ways to treat keys that occur twice. The pairs that First and Last drop are losses.
const (
	DupError DupMode = iota // an error of class fault.Conflict
	DupFirst                // the first pair is kept, where it stands
	DupLast                 // the last pair is kept, where it stands
	DupAll                  // all are written; keys are not compared
)

var (
	nonFiniteNames = []string{"error", "null", "string"}
	utf8Names      = []string{"error", "replace"}
	keyNames       = []string{"error", "string", "pairs"}
	dupNames       = []string{"error", "first", "last", "all"}
)

// MarshalText gives the word of the command line: error, null or string.
func (m NonFiniteMode) MarshalText() ([]byte, error) { return modeText(nonFiniteNames, uint8(m)) }

// UnmarshalText reads what MarshalText gives.
func (m *NonFiniteMode) UnmarshalText(b []byte) error {
	return parseMode(nonFiniteNames, b, (*uint8)(m))
}

// MarshalText gives the word of the command line: error or replace.
func (m UTF8Mode) MarshalText() ([]byte, error) { return modeText(utf8Names, uint8(m)) }

// UnmarshalText reads what MarshalText gives.
func (m *UTF8Mode) UnmarshalText(b []byte) error { return parseMode(utf8Names, b, (*uint8)(m)) }

// MarshalText gives the word of the command line: error, string or pairs.
func (m KeyMode) MarshalText() ([]byte, error) { return modeText(keyNames, uint8(m)) }

// UnmarshalText reads what MarshalText gives.
func (m *KeyMode) UnmarshalText(b []byte) error { return parseMode(keyNames, b, (*uint8)(m)) }

// MarshalText gives the word of the command line: error, first, last or all.
func (m DupMode) MarshalText() ([]byte, error) { return modeText(dupNames, uint8(m)) }

// UnmarshalText reads what MarshalText gives.
func (m *DupMode) UnmarshalText(b []byte) error { return parseMode(dupNames, b, (*uint8)(m)) }

func modeText(names []string, m uint8) ([]byte, error) {
	if int(m) >= len(names) {
		return nil, fault.New(fault.Invalid, "value", "mode %d, there are %d", m, len(names))
	}
	return []byte(names[m]), nil
}

func parseMode(names []string, b []byte, m *uint8) error {
	i := slices.Index(names, string(b))
	if i < 0 {
		return fault.New(fault.Invalid, "value", "%q, want one of %q", b, names)
	}
	*m = uint8(i)
	return nil
}
