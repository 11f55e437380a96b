package value

import (
	"io"
	"math"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
)

// Scanner reads the tokens of encoded values, one after another. It is not recursive, does not allocate per token, and
// keeps a stack of open containers, bounded by [Limits.Depth]. A container that claims more items than bytes are left
// is refused at its head; the check adds up over the containers that are open.
//
// Over a byte slice the content of strings is a part of that slice. Over a reader it is a part of the scanner's window,
// which is as long as the longest string. After an error other than [io.EOF] every call returns that error again. A
// Scanner is not safe for concurrent use.
type Scanner struct {
	Token // the token that Next has read

	codec Codec
	buf   []byte
	pos   int       // of the next token in buf
	start int64     // offset of the token that was read
	base  int64     // offset of buf[0]
	src   io.Reader // nil when buf holds all the input that there is
	err   error     // once set, the error of every call that finds buf empty
	end   int64     // offset at which the input ends, unknownEnd when src does not say
	lim   Limits

	rem       int64 // values to come in the innermost container; noCount inside one of indefinite length and at the top
	outer     int64 // values to come in the definite containers around it
	odd       bool  // in a map of indefinite length: an odd number of values was read
	tags      int   // tags read since the last value
	outerTags int   // tags around the open containers
	open      []openContainer
	join      []byte  // content of a CBOR string of indefinite length
	skip      skipper // for Skip; here for the memory of its stack
}

type openContainer struct {
	rem, outer int64
	tags       int // tags of this container
	kind       Kind
	odd        bool
}

const (
	noCount    = math.MinInt64 / 2 // counts down without ever reaching 0
	unknownEnd = math.MaxInt64 / 2 // leaves room for the sums of counts
	minWindow  = 64 << 10
)

// NewScanner returns a scanner of the values in data.
func NewScanner(c Codec, data []byte, lim Limits) *Scanner {
	s := new(Scanner)
	s.Reset(c, data, lim)
	return s
}

// Reset makes s a new scanner of the values in data; it keeps the memory of its stacks.
func (s *Scanner) Reset(c Codec, data []byte, lim Limits) {
	*s = Scanner{codec: c, buf: data, end: int64(len(data)), lim: lim, rem: noCount, open: s.open[:0], join: s.join[:0],
		skip: skipper{open: s.skip.open[:0]}}
}

// NewStream returns a scanner of the values that r gives. size is the number of bytes that r gives, -1 when that is
// not known; it serves to refuse impossible lengths early, and no more than size bytes are read. Content longer than
// the window of 64 KiB makes the window grow as bytes arrive, never by a length that the input claims. An error of r is
// returned as it is, once the tokens before it are read.
func NewStream(c Codec, r io.Reader, size int64, lim Limits) *Scanner {
	if size < 0 {
		return &Scanner{codec: c, src: r, end: unknownEnd, lim: lim, rem: noCount}
	}
	return &Scanner{codec: c, src: io.LimitReader(r, size), end: size, lim: lim, rem: noCount}
}

// Codec returns the codec that is scanned.
func (s *Scanner) Codec() Codec { return s.codec }

// Depth is the number of containers that are open: after an Array or Map token it counts that one.
func (s *Scanner) Depth() int { return len(s.open) }

// Offset is the offset of the first byte behind the token that was read.
func (s *Scanner) Offset() int64 { return s.base + int64(s.pos) }

// Start is the offset of the first byte of the token that was read.
func (s *Scanner) Start() int64 { return s.start }

// InKey reports whether the next value is the key of a map pair. (Where the map ends, the next token is its End.)
func (s *Scanner) InKey() bool {
	if len(s.open) == 0 || s.open[len(s.open)-1].kind != Map {
		return false
	}
	if s.rem < 0 {
		return !s.odd
	}
	return s.rem&1 == 0
}

// Next reads one token. At the end of the input between two values of the top level it returns [io.EOF]; where the
// input ends elsewhere, an error for which [IsTruncated] holds.
func (s *Scanner) Next() error {
	if s.rem == 0 {
		s.start = s.Offset()
		s.closeContainer()
		return nil
	}
	if s.src != nil && len(s.buf)-s.pos < MaxHead {
		s.fillHead()
	}
	p := s.buf[s.pos:]
	if len(p) == 0 {
		return s.atEnd()
	}
	s.start = s.base + int64(s.pos)
	f := &forms[s.codec][p[0]]
	n := f.size()
	if len(p) < n {
		return s.short("the head of a value", int64(n-len(p)))
	}
	kind, arg := f.kind, uint64(f.arg)
	if f.width != 0 {
		arg = f.argument(p)
	}
	switch f.flags {
	case 0:
	case signed:
		kind, arg = f.signed(arg)
	case extType:
		s.Ext = int8(p[n-1])
	case simple8:
		if arg < 32 {
			return s.fail(badSimple(arg).At(s.start))
		}
	case indefinite:
		return s.nextIndefinite(kind)
	}
	s.Bits = arg
	switch kind {
	case String, Bytes, Ext:
		s.pos += n
		if err := s.take(kind, arg, s.start); err != nil {
			return err
		}
	case Array, Map:
		if arg > maxLength {
			return s.tooLong(kind, arg, s.start)
		}
		s.pos += n
		s.Kind, s.Len = kind, int(arg)
		if kind == Map {
			arg *= 2
		}
		return s.push(kind, int64(arg))
	case Tag:
		if s.nested() >= s.lim.depth() {
			return s.fail(depthFault(s.lim).At(s.start))
		}
		s.tags++
		s.pos += n
		s.Kind = Tag
		return nil
	case End:
		return s.closeIndefinite()
	case Invalid:
		return s.fail(badOpcode(s.codec, p[0]).At(s.start))
	default:
		s.pos += n
	}
	s.Kind = kind
	s.passed()
	return nil
}

// passed counts one value of the innermost container as read, or as begun when it is a container itself.
func (s *Scanner) passed() {
	s.rem--
	s.odd = !s.odd
	s.tags = 0
}

// nested is the number of containers and tags around the next value.
func (s *Scanner) nested() int { return len(s.open) + s.outerTags + s.tags }

// push opens a container of count values, noCount for one of indefinite length.
func (s *Scanner) push(kind Kind, count int64) error {
	if s.nested() >= s.lim.depth() {
		return s.fail(depthFault(s.lim).At(s.start))
	}
	tags := s.tags
	s.passed()
	if len(s.open) < cap(s.open) {
		s.open = s.open[:len(s.open)+1]
	} else {
		s.open = append(s.open, openContainer{})
	}
	// Field by field: a composite literal is built aside and copied in words wider than it was written, which stalls.
	top := &s.open[len(s.open)-1]
	top.rem, top.outer, top.tags, top.kind, top.odd = s.rem, s.outer, tags, kind, s.odd
	s.outerTags += tags
	if s.rem > 0 {
		s.outer += s.rem
	}
	s.rem, s.odd = count, false
	// Each value takes a byte at least. What was claimed before is within the limit, so nothing overflows.
	if count > 0 && count > s.end-s.Offset()-s.outer {
		return s.fail(errTruncated(s.start, kind.withArticle(), count-(s.end-s.Offset()-s.outer)))
	}
	return nil
}

func (s *Scanner) closeContainer() {
	top := &s.open[len(s.open)-1]
	s.rem, s.outer, s.odd = top.rem, top.outer, top.odd
	s.outerTags -= top.tags
	s.open = s.open[:len(s.open)-1]
	s.Kind = End
}

func (s *Scanner) closeIndefinite() error {
	switch {
	case len(s.open) == 0 || s.rem >= 0 || s.tags > 0:
		return s.fail(strayBreak().At(s.start))
	case s.odd && s.open[len(s.open)-1].kind == Map:
		return s.fail(oddMap().At(s.start))
	}
	s.pos++
	s.closeContainer()
	return nil
}

func (s *Scanner) nextIndefinite(kind Kind) error {
	s.pos++
	if kind == Array || kind == Map {
		s.Kind, s.Len = kind, -1
		return s.push(kind, noCount)
	}
	s.join = s.join[:0]
	for {
		s.fillHead()
		at := s.Offset()
		h, err := ReadHead(CBOR, s.buf[s.pos:])
		if err == io.ErrUnexpectedEOF {
			return s.short(kind.withArticle()+" of indefinite length", 1)
		} else if err != nil {
			return s.fail(fault.Shift(err, at))
		}
		s.pos += h.Size
		if h.Kind == End {
			break
		}
		if h.Kind != kind || h.Indefinite {
			return s.fail(badChunk(kind, &forms[CBOR][s.buf[s.pos-h.Size]]).At(at))
		}
		if err := s.take(kind, h.Arg, at); err != nil {
			return err
		}
		// RFC 8949 section 3.2.3: a character never lies across two chunks. Joined bytes would not show that.
		if kind == String && !utf8.Valid(s.Data) {
			return s.fail(corrupt("chunk of a string is not UTF-8").At(at))
		}
		s.join = append(s.join, s.Data...)
	}
	s.Data = s.join[:len(s.join):len(s.join)]
	s.Bits = uint64(len(s.join))
	s.Kind = kind
	s.passed()
	return nil
}

// tooLong is the error of a length beyond maxLength, of the head at offset at. That the input is shorter says more.
func (s *Scanner) tooLong(kind Kind, n uint64, at int64) error {
	if left := s.end - s.Offset(); n <= noLength && int64(n) > left {
		return s.fail(errTruncated(s.start, kind.withArticle(), int64(n)-left))
	}
	return s.fail(badLength(kind, n).At(at))
}

// take passes n bytes of content, of the head at offset at, and leaves them in Data.
func (s *Scanner) take(kind Kind, n uint64, at int64) error {
	if n > maxLength {
		return s.tooLong(kind, n, at)
	}
	if n > uint64(len(s.buf)-s.pos) {
		if int64(n) > s.end-s.Offset() {
			return s.fail(errTruncated(s.start, kind.withArticle(), int64(n)-(s.end-s.Offset())))
		}
		if s.fill(int(n)); n > uint64(len(s.buf)-s.pos) {
			return s.short(kind.withArticle(), int64(n)-int64(len(s.buf)-s.pos))
		}
	}
	s.Data = s.buf[s.pos : s.pos+int(n) : s.pos+int(n)]
	s.pos += int(n)
	return nil
}

// fillHead brings the head at pos into the window, and of what follows only as much as the reader gives with it: a
// value that is whole is not kept back until more arrives.
func (s *Scanner) fillHead() {
	s.fill(1)
	if s.pos < len(s.buf) {
		s.fill(forms[s.codec][s.buf[s.pos]].size())
	}
}

// fill brings at least n bytes from pos on into the window, fewer only where the input ends or its reader fails.
func (s *Scanner) fill(n int) {
	if s.src == nil || len(s.buf)-s.pos >= n {
		return
	}
	rest := copy(s.buf, s.buf[s.pos:])
	s.base += int64(s.pos)
	s.pos = 0
	s.buf = s.buf[:rest]
	for s.src != nil && len(s.buf) < n {
		if len(s.buf) == cap(s.buf) {
			grown := make([]byte, len(s.buf), max(minWindow, 2*cap(s.buf)))
			copy(grown, s.buf)
			s.buf = grown
		}
		s.buf = s.buf[:len(s.buf)+s.read(s.buf[len(s.buf):cap(s.buf)])]
	}
}

// discard passes n bytes, of which the window holds fewer, without keeping them. It reports whether they were there.
func (s *Scanner) discard(n int64) bool {
	n -= int64(len(s.buf) - s.pos)
	s.base += int64(len(s.buf))
	s.pos, s.buf = 0, s.buf[:0]
	for s.src != nil && n > 0 {
		m := s.read(s.buf[:min(n, int64(cap(s.buf)))])
		n -= int64(m)
		s.base += int64(m)
	}
	return n == 0
}

// read reads some bytes into p. Where src has none it sets src to nil, end or err.
func (s *Scanner) read(p []byte) int {
	for range 100 { // as bufio does with a reader that neither reads nor fails
		n, err := s.src.Read(p)
		if err != nil {
			s.src = nil
			if err == io.EOF {
				s.end = s.base + int64(len(s.buf)+n)
			} else {
				s.err = err
			}
		}
		if n > 0 || err != nil {
			return n
		}
	}
	s.src, s.err = nil, io.ErrNoProgress
	return 0
}

// Skip passes the next value whole: a container with all that is in it. In a map, a key and its value are two values;
// behind a Tag it passes the tagged value. At the end of an open container, and at the end of the input, it does what
// [Scanner.Next] does. Else there is no token then: its Kind is Invalid. What [Skip] says of depth and strings holds
// here.
func (s *Scanner) Skip() error {
	if !s.atValue() {
		return s.Next()
	}
	s.startSkip()
	for {
		n, err := s.skip.run(s.buf[s.pos:], s.left())
		if err == io.ErrUnexpectedEOF {
			return s.short("a value", 0)
		} else if err != nil && err != errMore {
			return s.fail(fault.Shift(err, s.Offset()))
		}
		if n <= len(s.buf)-s.pos {
			s.pos += n
		} else if !s.discard(int64(n)) {
			return s.short("a value", 0)
		}
		if err == nil {
			s.endSkip()
			return nil
		}
		rest := len(s.buf) - s.pos
		if s.fill(rest + 1); len(s.buf)-s.pos == rest {
			return s.short("a value", 0)
		}
	}
}

// atValue reports whether a value comes next, not the end of the container or of the input.
func (s *Scanner) atValue() bool {
	if s.rem == 0 {
		return false
	}
	s.fill(1)
	return s.pos < len(s.buf) && (s.buf[s.pos] != breakByte || s.codec != CBOR)
}

func (s *Scanner) startSkip() {
	s.start = s.Offset()
	s.skip = skipper{codec: s.codec, lim: s.lim, need: 1, open: s.skip.open[:0]}
}

func (s *Scanner) endSkip() {
	s.Token = Token{}
	s.passed()
}

// left is the number of bytes from pos to the end of the input, as far as that is known.
func (s *Scanner) left() int { return int(min(s.end-s.Offset(), unknownLeft)) }

// atEnd is the error where the window is empty and cannot be filled.
func (s *Scanner) atEnd() error {
	if s.err == nil && s.nested() == 0 {
		return io.EOF
	}
	s.start = s.Offset()
	return s.short("a container", max(s.rem, 1))
}

// short is the error where the input is too short for something: what its reader said, or that it is truncated.
func (s *Scanner) short(what string, more int64) error {
	if s.err != nil {
		return s.fail(s.err)
	}
	return s.fail(errTruncated(s.start, what, more))
}

// fail makes err the error of this call and of all that follow.
func (s *Scanner) fail(err error) error {
	s.base += int64(s.pos)
	s.buf, s.pos, s.src = nil, 0, nil
	s.rem = noCount
	s.err = err
	s.Token = Token{}
	return err
}
