package value

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
	NonFiniteString                      // "NaN", "Infinity", "-Infinity", a loss
)

// UTF8Mode says what strings that are not valid UTF-8 become.
type UTF8Mode uint8

// The ways to write strings that are not valid UTF-8, and to read them.
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

// DupMode says what happens to keys that occur twice in one map. Two keys are the same when their JSON texts are; with
// KeysPairs they must be of one kind too, so that the string "QQ" is not the binary value that is written so.
type DupMode uint8

// The ways to treat keys that occur twice. The pairs that First and Last drop are losses.
const (
	DupError DupMode = iota // an error of class fault.Conflict
	DupFirst                // the first pair is kept, where it stands
	DupLast                 // the last pair is kept, where it stands
	DupAll                  // all are written; keys are not compared
)
