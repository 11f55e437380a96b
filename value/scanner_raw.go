package value

import (
	"io"

	"github.com/spilehq/spile/fault"
)

// Raw passes the next value whole, like [Scanner.Skip], and returns its bytes. They are valid until the next call. At
// the end of an open container it reads the End and returns nil. Over a reader, the window grows to hold the value.
func (s *Scanner) Raw() ([]byte, error) {
	if !s.atValue() {
		return nil, s.Next()
	}
	s.startSkip()
	for n := 0; ; {
		m, err := s.skip.run(s.buf[s.pos+n:], s.left()-n)
		n += m
		want := n
		switch err {
		case nil:
		case errMore: // a byte at least behind what is there, which may be a part of a head
			want = max(n, len(s.buf)-s.pos) + 1
		case io.ErrUnexpectedEOF:
			return nil, s.short("a value", 0)
		default:
			return nil, s.fail(fault.Shift(err, s.Offset()+int64(n-m)))
		}
		if s.fill(want); len(s.buf)-s.pos < want {
			return nil, s.short("a value", 0)
		}
		if err == nil {
			raw := s.buf[s.pos : s.pos+n : s.pos+n]
			s.pos += n
			s.endSkip()
			return raw, nil
		}
	}
}
