package value

import (
	"io"
)

// Skipper passes over values whose bytes come in windows, like [Skip] over one slice. The zero value has nothing to
// pass. It is not safe for concurrent use.
type Skipper struct{ k skipper }

// Begin makes s pass over n values.
func (s *Skipper) Begin(c Codec, n int, lim Limits) {
	s.k = skipper{codec: c, lim: lim, need: max(n, 0), open: s.k.open[:0]}
}

// Pass passes over what p, the next bytes of the input, has of the values; left is the number of bytes that the input
// has from there on, len(p) or more. It returns how many bytes it passed and whether the values are complete. Where
// they are not, the next call goes on behind the n bytes that were passed: n is more than len(p) when the content of a
// string goes on behind p, and less when p ends within a head, of [MaxHead] bytes at most. Values that claim more than
// is left give [io.ErrUnexpectedEOF] itself.
func (s *Skipper) Pass(p []byte, left int) (n int, done bool, err error) {
	n, err = s.k.run(p, left)
	switch {
	case err == errMore && n >= left, err == nil && n > left:
		return n, false, io.ErrUnexpectedEOF
	case err == errMore:
		return n, false, nil
	}
	return n, err == nil, err
}
