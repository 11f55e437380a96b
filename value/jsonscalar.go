package value

import (
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
)

// float writes a float of the given size.
func (w *JSONWriter) float(f float64, size int, offset int64) error {
	if f-f == 0 {
		w.buf = appendFloat(w.buf, f, size)
		return nil
	}
	buf, e := appendNonFinite(w.buf, f, w.opts.NonFinite)
	if e != nil {
		return e.At(offset)
	}
	w.buf = buf
	if w.opts.NonFinite == NonFiniteNull {
		return w.lost(LossNonFinite, offset)
	}
	return w.lost(LossNonFiniteText, offset)
}

// string writes a string.
func (w *JSONWriter) string(p []byte, offset int64) error {
	if n := plainPrefix(p); n < len(p) && !utf8.Valid(p[n:]) {
		if w.opts.InvalidUTF8 == UTF8Error {
			return invalidText(p).At(offset)
		}
		if err := w.lost(LossUTF8, offset); err != nil {
			return err
		}
		w.scratch = replaceUTF8(w.scratch[:0], p)
		p = w.scratch
	}
	w.buf = append(w.buf, '"')
	for len(p) > byteChunk {
		w.buf = appendEscaped(w.buf, p[:byteChunk])
		p = p[byteChunk:]
		if err := w.spillValue(); err != nil {
			return err
		}
	}
	w.buf = append(appendEscaped(w.buf, p), '"')
	return nil
}

// binary writes binary as text.
func (w *JSONWriter) binary(p []byte, form byteForm) error {
	w.buf = append(w.buf, '"')
	for len(p) > byteChunk {
		w.buf = appendBytesText(w.buf, p[:byteChunk], form)
		p = p[byteChunk:]
		if err := w.spillValue(); err != nil {
			return err
		}
	}
	w.buf = append(appendBytesText(w.buf, p, form), '"')
	return nil
}

// spillValue spills inside a scalar, unless it is a key.
func (w *JSONWriter) spillValue() error {
	if f := w.top(); f.isMap() && !f.value {
		return nil
	}
	return w.spill()
}

// ext writes a msgpack ext value.
func (w *JSONWriter) ext(typ int8, p []byte, form byteForm) error {
	if typ == extTimestamp {
		b, ok := appendTimestamp(w.buf, p)
		if w.buf = b; ok {
			return nil
		}
	}
	f := w.top()
	indent := f.indent + 1
	if f.kind == frameTop {
		indent = 1
	} else if f.kind == framePairs {
		indent++
	}
	pretty := w.opts.Pretty && w.text == 0 && (w.opts.Keys != KeysString || !f.isMap() || f.value)
	colon := ":"
	w.buf = append(w.buf, '{')
	if pretty {
		w.line(indent)
		colon = ": "
	}
	w.buf = append(append(w.buf, `"$ext"`...), colon...)
	if typ < 0 {
		w.buf = appendUint(append(w.buf, '-'), uint64(-int64(typ)))
	} else {
		w.buf = appendUint(w.buf, uint64(typ))
	}
	w.buf = append(w.buf, ',')
	if pretty {
		w.line(indent)
	}
	w.buf = append(append(w.buf, `"$data"`...), colon...)
	if err := w.binary(p, form); err != nil {
		return err
	}
	if pretty {
		w.line(indent - 1)
	}
	w.buf = append(w.buf, '}')
	return nil
}

// bignum writes the integer of a tag 2 or 3.
func (w *JSONWriter) bignum(s *Scanner, tag uint8, depth int) (bool, error) {
	if len(s.Data) > maxBignum {
		return false, fault.New(fault.Limit, "value", "bignum of %d bytes, at most %d", len(s.Data), maxBignum).At(s.start)
	}
	w.buf = appendBignum(w.buf, s.Data, tag == tagNegBig)
	return w.complete(s, depth)
}
