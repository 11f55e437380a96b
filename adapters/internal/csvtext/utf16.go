package csvtext

import (
	"bufio"
	"encoding/binary"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
)

// Decoded passes a byte order mark and returns the text behind it as UTF-8. The decoder of golang.org/x/text is not used
// because it makes U+FFFD of half a surrogate pair.
func Decoded(pkg string, r io.Reader) (io.Reader, error) {
	br := bufio.NewReaderSize(r, 1<<16)
	mark, err := br.Peek(4)
	if err != nil && err != io.EOF {
		return nil, fault.New(nil, pkg, "").Because(err)
	}
	switch {
	case len(mark) >= 3 && string(mark[:3]) == "\xef\xbb\xbf":
		br.Discard(3)
	case string(mark) == "\xff\xfe\x00\x00" || string(mark) == "\x00\x00\xfe\xff":
		return nil, fault.New(fault.Invalid, pkg, "the text is UTF-32, want UTF-8 or UTF-16")
	case len(mark) >= 2 && string(mark[:2]) == "\xff\xfe":
		br.Discard(2)
		return &wide{pkg: pkg, r: br, order: binary.LittleEndian, at: 2}, nil
	case len(mark) >= 2 && string(mark[:2]) == "\xfe\xff":
		br.Discard(2)
		return &wide{pkg: pkg, r: br, order: binary.BigEndian, at: 2}, nil
	}
	return br, nil
}

// wide gives UTF-16 as UTF-8.
type wide struct {
	pkg   string
	r     *bufio.Reader
	order binary.ByteOrder
	at    int64
	err   error
}

func (w *wide) Read(p []byte) (n int, err error) {
	if len(p) < utf8.UTFMax {
		return 0, io.ErrShortBuffer
	}
	for n+utf8.UTFMax <= len(p) && w.err == nil {
		start := w.at
		unit, err := w.unit()
		if err != nil {
			w.err = err
			break
		}
		c := rune(unit)
		if utf16.IsSurrogate(c) {
			second, err := w.unit()
			if err != nil && err != io.EOF {
				w.err = err
				break
			}
			if c = utf16.DecodeRune(c, rune(second)); c == utf8.RuneError {
				w.err = fault.New(fault.Invalid, w.pkg, "half a surrogate pair, %#04x, in UTF-16", unit).At(start)
				break
			}
		}
		n += utf8.EncodeRune(p[n:], c)
	}
	if n > 0 {
		return n, nil
	}
	return 0, w.err
}

func (w *wide) unit() (uint16, error) {
	p, err := w.r.Peek(2)
	if len(p) < 2 {
		if len(p) == 1 && err == io.EOF {
			return 0, fault.New(fault.Invalid, w.pkg, "half a character at the end of UTF-16").At(w.at)
		}
		return 0, err
	}
	u := w.order.Uint16(p)
	w.r.Discard(2)
	w.at += 2
	return u, nil
}
