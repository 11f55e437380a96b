package msglc

import (
	"unicode/utf8"

	"github.com/spilehq/spile/value"
)

// textScan looks for text that is not UTF-8 in bytes whose structure was found right before: it goes from head to head
// without a thought for what is in what. Salvage looks at all text, and the tokens of a scanner took 2.5 times as long,
// more than all the rest (BenchmarkSalvage).
type textScan struct {
	codec value.Codec
	pos   int64 // of the byte that comes next
	bad   int64 // position of the first text that is not UTF-8, -1 as long as there is none

	rest   []byte // the start of a head that goes on in the next bytes
	char   []byte // the start of a character that goes on in the next bytes, or in the next chunk of its text
	left   int64  // bytes to come of the content that is open
	text   bool   // the content is text
	joined bool   // inside a string of indefinite length, whose chunks are one text
	at     int64  // of the text that is open
}

func newTextScan(c value.Codec, pos int64) *textScan { return &textScan{codec: c, pos: pos, bad: -1} }

// textStep says of a first byte how long the value is, its content included and what is in a container left out; 0
// where that stands behind it. Of strings the highest bit is set.
type textStep uint8

const isText textStep = 0x80

var textSteps = [...][256]textStep{value.Msgpack: textStepsOf(value.Msgpack), value.CBOR: textStepsOf(value.CBOR)}

func textStepsOf(c value.Codec) (t [256]textStep) {
	var low, high [value.MaxHead]byte
	for i := range high {
		high[i] = 1
	}
	for b := range t {
		low[0], high[0] = byte(b), byte(b)
		h, err := value.ReadHead(c, low[:])
		other, err2 := value.ReadHead(c, high[:])
		switch {
		case err != nil || err2 != nil || h.Indefinite || h.Kind == value.End:
		case !h.HasContent():
			t[b] = textStep(h.Size)
		case h.Arg == other.Arg:
			t[b] = textStep(h.Size + int(h.Arg))
			if h.Kind == value.String {
				t[b] |= isText
			}
		}
	}
	return t
}

// take looks at the bytes that come next.
func (s *textScan) take(p []byte) {
	if len(s.rest) > 0 {
		s.pos -= int64(len(s.rest))
		p = append(s.rest, p...)
		s.rest = nil
	}
	steps := &textSteps[s.codec]
	i := 0
	for i < len(p) && s.bad < 0 {
		if s.left > 0 {
			n := int(min(s.left, int64(len(p)-i)))
			s.left -= int64(n)
			if s.text {
				s.piece(p[i:i+n], s.left == 0 && !s.joined)
			}
			i += n
			continue
		}
		step := steps[p[i]]
		if n := int(step &^ isText); step != 0 && !s.joined && i+n <= len(p) {
			if step&isText != 0 && !utf8.Valid(p[i+1:i+n]) {
				s.bad = s.pos + int64(i)
			}
			i += n
			continue
		}
		h, err := value.ReadHead(s.codec, p[i:])
		if err != nil { // it goes on in the next bytes
			break
		}
		switch {
		case h.Kind == value.String && h.Indefinite:
			s.joined, s.at = true, s.pos+int64(i)
		case h.Kind == value.End && s.joined:
			s.piece(nil, true)
			s.joined = false
		case h.HasContent():
			s.left, s.text = int64(h.Arg), h.Kind == value.String
			if !s.joined {
				s.at = s.pos + int64(i)
			}
		}
		i += h.Size
	}
	s.pos += int64(len(p))
	if i < len(p) {
		s.rest = append([]byte(nil), p[i:]...)
	}
}

// piece looks at the next bytes of a text, whose characters all end by the last piece.
func (s *textScan) piece(p []byte, last bool) {
	if len(s.char) > 0 {
		p = append(s.char, p...)
		s.char = nil
	}
	if !last {
		for k := 1; k < utf8.UTFMax && k <= len(p); k++ {
			if end := p[len(p)-k:]; utf8.RuneStart(end[0]) {
				if !utf8.FullRune(end) {
					s.char = append([]byte(nil), end...)
					p = p[:len(p)-k]
				}
				break
			}
		}
	}
	if !utf8.Valid(p) {
		s.bad = s.at
	}
}
