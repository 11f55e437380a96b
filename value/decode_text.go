package value

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
)

// textValue gives UTF-8 as a boxed string. Documents repeat their short strings, and a box costs more than the text:
// the last one of each hash is kept.
func (d *decoder) textValue(b []byte) (any, bool) {
	n := uint64(len(b))
	if n > maxWords {
		text, ok := d.string(b)
		if n > maxShared {
			return text, ok
		}
		return d.strings.Box(text), ok
	}
	x, y := words(b)
	i := wordsHash(x, y, n) % slots
	slot := &d.texts[i]
	if slot.x == x && slot.y == y && slot.n == n && slot.boxed != nil {
		return slot.boxed, true
	}
	if (x|y)&notASCII != 0 && !utf8.Valid(b) {
		return nil, false
	}
	boxed := d.strings.Box(d.cut(b))
	slot.x, slot.y, slot.n, slot.boxed = x, y, n, boxed
	if d.kept < len(d.filled) {
		d.filled[d.kept] = uint8(i)
	}
	d.kept++
	return boxed, true
}

// keyText gives UTF-8 that is a key. Documents repeat their keys: the last one of each hash is kept, with memory of its
// own, since it outlives the document.
func (d *decoder) keyText(b []byte) (string, bool) {
	n := uint64(len(b))
	if n > maxWords {
		return d.longKey(b)
	}
	x, y := words(b)
	slot := &d.keys[wordsHash(x, y, n)%slots]
	if slot.x == x && slot.y == y && uint64(len(slot.text)) == n {
		return slot.text, true
	}
	if (x|y)&notASCII != 0 && !utf8.Valid(b) {
		return "", false
	}
	slot.x, slot.y, slot.text = x, y, string(b)
	return slot.text, true
}

func (d *decoder) longKey(b []byte) (string, bool) {
	n := len(b)
	if n > maxSharedKey {
		return d.string(b)
	}
	x, y := words(b)
	slot := &d.long[wordsHash(x, y, uint64(n))%slots]
	if *slot == string(b) {
		return *slot, true
	}
	if !utf8.Valid(b) {
		return "", false
	}
	*slot = string(b)
	return *slot, true
}

// string gives UTF-8 as a string.
func (d *decoder) string(b []byte) (string, bool) {
	if !utf8.Valid(b) {
		return "", false
	}
	return d.cut(b), true
}

// cut gives b as a string, a short one as a part of a block.
func (d *decoder) cut(b []byte) string {
	n := len(b)
	if n > maxShared {
		return string(b)
	}
	at := d.text.Len()
	if n > d.text.Cap()-at {
		d.text.Reset()
		d.text.Grow(textBlock)
		at = 0
	}
	d.text.Write(b)
	return d.text.String()[at:]
}

// maxWords is the length of the text that words holds whole.
const maxWords = 16

const notASCII = 0x8080808080808080

// words gives the first and the last eight bytes of b, and all of it when it is shorter than that: together with its
// length they stand for a text of up to maxWords bytes.
func words(b []byte) (x, y uint64) {
	switch n := len(b); {
	case n >= 8:
		return binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:])
	case n >= 4:
		return uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint32(b[n-4:]))<<32, 0
	case n > 0:
		return uint64(b[0]) | uint64(b[n/2])<<8 | uint64(b[n-1])<<16, 0
	}
	return 0, 0
}

// wordsHash need not be strong: a collision costs a copy.
func wordsHash(x, y, n uint64) uint64 {
	return ((x^n)*0x9e3779b97f4a7c15 ^ y) * 0xd6e8feb86659fd93 >> 56
}

func notUTF8(s *Scanner) *fault.Error {
	return fault.New(fault.Corrupt, "value", "string of %d bytes is not UTF-8", len(s.Data)).At(s.start)
}

// place gives a fault the path of the value that is being decoded.
func (d *decoder) place(err error) error {
	var e *fault.Error
	if !errors.As(err, &e) || e.Where != "" {
		return err
	}
	var p pathText
	for i := range d.typed {
		d.typed[i].step(&p)
	}
	for i := range d.stack {
		d.stack[i].step(&p)
	}
	e.Where = p.String()
	return err
}

// step adds the place of the value that comes next in f.
func (f *frame) step(p *pathText) {
	switch {
	case f.kind == Array:
		p.index(len(f.list))
	case f.kind != Map:
	case f.mixed != nil:
		p.key(f.key)
	default:
		p.name(f.name)
	}
}

// pathText writes the path of a fault: keys and indexes with a slash between. A hostile document has long keys and deep
// nesting, and a message should stay readable.
type pathText struct {
	b    strings.Builder
	full bool
}

const (
	maxPath = 200
	maxStep = 60
)

func (p *pathText) String() string { return p.b.String() }

func (p *pathText) index(i int) { p.name(strconv.Itoa(i)) }

func (p *pathText) name(s string) {
	if p.full {
		return
	}
	if p.b.Len() > 0 {
		p.b.WriteByte('/')
	}
	if p.full = p.b.Len() > maxPath; p.full {
		p.b.WriteString("…")
		return
	}
	if len(s) > maxStep {
		cut := maxStep
		for !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	p.b.WriteString(s)
}

func (p *pathText) key(k any) {
	switch k := k.(type) {
	case string:
		p.name(k)
	case EncodedKey:
		p.name(fmt.Sprintf("(key of %d bytes)", len(k.Data)))
	default:
		p.name(fmt.Sprint(k))
	}
}
