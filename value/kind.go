package value

import "fmt"

// Codec names the encoding of a value. The zero value stands for "none" or "any".
type Codec uint8

// The codecs.
const (
	Msgpack Codec = 1 + iota
	CBOR
)

// String returns the name that the command line uses: "msgpack" or "cbor".
func (c Codec) String() string {
	switch c {
	case Msgpack:
		return "msgpack"
	case CBOR:
		return "cbor"
	}
	return fmt.Sprintf("codec(%d)", uint8(c))
}

// Kind is the kind of a token. Both codecs give the same kinds; where they differ, the comment names the codec.
type Kind uint8

// The kinds of a token.
const (
	Invalid   Kind = iota // no token
	Null                  // nothing else
	Bool                  // Bits is 0 or 1
	Uint                  // an integer >= 0: Bits
	Nint                  // an integer < 0: -1 - Bits, so that Bits 0 is -1 and Bits 2^64-1 is -2^64 (CBOR)
	Float16               // CBOR: Bits holds the 16 bits
	Float32               // Bits holds the 32 bits
	Float64               // Bits holds the 64 bits
	String                // Data, UTF-8 not yet checked
	Bytes                 // Data
	Ext                   // msgpack: Ext is the type, Data the content; type -1 is a timestamp
	Array                 // Len items follow, then End; Len is -1 in a CBOR array of indefinite length
	Map                   // Len pairs follow, then End; Len is -1 in a CBOR map of indefinite length
	Tag                   // CBOR: Bits is the tag number; the tagged value follows
	Undefined             // CBOR
	Simple                // CBOR: Bits is the number of another simple value
	End                   // the end of the innermost open array or map
)

var kindNames = [...]string{
	Invalid: "invalid", Null: "null", Bool: "bool", Uint: "int", Nint: "int", Float16: "float", Float32: "float",
	Float64: "float", String: "string", Bytes: "bytes", Ext: "ext", Array: "list", Map: "map", Tag: "tag",
	Undefined: "undefined", Simple: "simple", End: "end",
}

// withArticle is String in a sentence.
func (k Kind) withArticle() string {
	switch k {
	case Bytes, Null, Undefined:
		return k.String()
	case Uint, Nint, Ext, End:
		return "an " + k.String()
	}
	return "a " + k.String()
}

// String returns a word for people: the integers are all "int", the floats all "float".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "invalid"
}

// Token is one token of an encoded value.
type Token struct {
	Kind Kind
	Ext  int8   // the type of an Ext
	Bits uint64 // see the kinds
	Len  int    // items of an Array, pairs of a Map, -1 when the encoding does not say
	Data []byte // content of a String, Bytes or Ext; valid until the next call of the scanner
}

// Limits bounds what a hostile input can cost. The zero value means the defaults.
type Limits struct {
	// Depth is the number of arrays, maps and tags that may enclose one another; 0 means DefaultDepth,
	// and more than MaxDepth is MaxDepth.
	Depth int

	around int // see Within
}

// DefaultDepth is the depth limit of the zero Limits. The reference writes about 490 levels and reads about 1,000
// (docs/format/msglc.md, "Limits").
const DefaultDepth = 1000

// MaxDepth is the highest depth limit. What consumes values may be recursive, as a jq program is, and 10,000 calls
// within one another fit the stack.
const MaxDepth = 10_000

// MaxNesting is the depth limit that holds.
func (l Limits) MaxNesting() int {
	if l.Depth <= 0 {
		return DefaultDepth
	}
	return min(l.Depth, MaxDepth)
}

// Within gives the limits of values that n more containers enclose, so that the whole keeps to l.
func (l Limits) Within(n int) Limits {
	l.around += n
	return l
}

// depth is how many containers and tags may enclose one another in the value at hand.
func (l Limits) depth() int { return max(0, l.MaxNesting()-l.around) }
