package tcb

import (
	"fmt"
	"strings"
)

// Element is the type of the values of a column (docs/format/tcb.md, "Elements").
type Element uint8

// The elements. Their numbers are those of the wire byte.
const (
	Enum   Element = 0 // a label of an enumeration, by its number: 32 bits, signed
	Bool   Element = 1
	I32    Element = 2
	I64    Element = 3 // also datetime and timespan, in ticks of 100 ns
	F32    Element = 4
	F64    Element = 5
	String Element = 6
	UUID   Element = 7
)

var elementNames = [...]string{"enum", "bool", "i32", "i64", "f32", "f64", "string", "uuid"}

// String is the name that schemas use.
func (e Element) String() string {
	if int(e) < len(elementNames) {
		return elementNames[e]
	}
	return fmt.Sprintf("element %d", uint8(e))
}

// known reports whether the element is one that this version defines.
func (e Element) known() bool { return int(e) < len(elementNames) }

// size is what a value takes in a decoded column, in bytes.
func (e Element) size() int64 {
	switch e {
	case Bool:
		return 1
	case Enum, I32, F32:
		return 4
	case I64, F64:
		return 8
	}
	return 16 // the header of a string, a UUID
}

// rawSize is the least that a value takes in the RAW encoding, and whether each takes that.
func (e Element) rawSize() (size int64, fixed bool) {
	switch e {
	case Bool:
		return 1, true
	case I32, F32:
		return 4, true
	case I64, F64:
		return 8, true
	case UUID:
		return 16, true
	}
	return 1, false
}

// Kind says how many values a row has.
type Kind uint8

// The kinds.
const (
	Scalar Kind = 0 // one
	Array  Kind = 1 // a length, and as many
)

// String is "scalar" or "array".
func (k Kind) String() string {
	switch k {
	case Scalar:
		return "scalar"
	case Array:
		return "array"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// The wire byte of a descriptor.
const (
	wireElement         = 0x0f
	wireKind            = 0x30
	wireKindShift       = 4
	wireOptional        = 0x40
	wireElementOptional = 0x80
)

// Type is what the wire byte of a column says.
type Type struct {
	Element         Element
	Kind            Kind
	Optional        bool // rows can be absent
	ElementOptional bool // elements of arrays can be absent
}

// String is the type as a schema writes it, "i32[]", with "?" for what can be absent: "i32?[]?" is an optional array of
// optional elements.
func (t Type) String() string {
	s := t.Element.String()
	if t.ElementOptional {
		s += "?"
	}
	switch t.Kind {
	case Scalar:
	case Array:
		s += "[]"
	default:
		s += " of " + t.Kind.String()
	}
	if t.Optional {
		s += "?"
	}
	return s
}

// TypeText is Type.String with the logical type: "datetime?[]".
func (f *Field) TypeText() string {
	name, _ := strings.CutSuffix(f.TypeName(), "[]")
	return name + strings.TrimPrefix(f.Type.String(), f.Type.Element.String())
}

func typeOf(wire byte) Type {
	return Type{
		Element: Element(wire & wireElement), Kind: Kind(wire & wireKind >> wireKindShift),
		Optional: wire&wireOptional != 0, ElementOptional: wire&wireElementOptional != 0,
	}
}

func (t Type) wire() byte {
	b := byte(t.Element) | byte(t.Kind)<<wireKindShift
	if t.Optional {
		b |= wireOptional
	}
	if t.ElementOptional {
		b |= wireElementOptional
	}
	return b
}

// Encoding is how the values of a block are stored (docs/format/tcb.md, "Encodings").
type Encoding uint8

// The encodings.
const (
	Raw          Encoding = 0
	Varint       Encoding = 1
	Delta        Encoding = 2
	RLE          Encoding = 3
	DeltaRLE     Encoding = 4
	Dict         Encoding = 5
	DictRLE      Encoding = 6
	DictFront    Encoding = 7
	DictFrontRLE Encoding = 8
	ArrayOf      Encoding = 9
	Whole        Encoding = 10
	DictSeg      Encoding = 11
	DictSegRLE   Encoding = 12
	BitPack      Encoding = 13
)

var encodingNames = [...]string{
	"RAW", "VARINT", "DELTA", "RLE", "DELTA_RLE", "DICT", "DICT_RLE", "DICT_FRONT", "DICT_FRONT_RLE", "ARRAY", "WHOLE",
	"DICT_SEG", "DICT_SEG_RLE", "BITPACK",
}

// String is the name in docs/format/tcb.md.
func (e Encoding) String() string {
	if int(e) < len(encodingNames) {
		return encodingNames[e]
	}
	return fmt.Sprintf("encoding %d", uint8(e))
}

// scalarEncodings are the encodings of a column of one value a row, and of the elements in ARRAY, in the order in
// which the writer tries them.
var scalarEncodings = [...][]Encoding{
	Enum:   {Raw, RLE, BitPack},
	Bool:   {Raw, RLE, BitPack},
	I32:    {Raw, Varint, Delta, RLE, DeltaRLE, BitPack},
	I64:    {Raw, Dict, DictRLE, BitPack},
	F32:    {Raw, Dict, DictRLE, Whole},
	F64:    {Raw, Dict, DictRLE, Whole},
	String: {Raw, Dict, DictRLE, DictFront, DictFrontRLE, DictSeg, DictSegRLE},
	UUID:   {Raw},
}

// allows reports whether a column of the type can be stored in the encoding (check C4).
func (t Type) allows(enc Encoding) bool {
	if !t.Element.known() {
		return false
	}
	if t.Kind == Array {
		return enc == Raw || enc == ArrayOf && t.Element != UUID
	}
	for _, e := range scalarEncodings[t.Element] {
		if e == enc {
			return true
		}
	}
	return false
}
