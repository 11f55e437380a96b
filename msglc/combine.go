package msglc

import (
	"context"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// Part is one archive that goes into a combined one. It comes from one of three sources: an object that begins with an
// archive (a [source.Section] where it begins later), an open archive, or a value that is written as an archive with
// the options of the combination. A part that names none is the value null.
type Part struct {
	Name   string // in a map; must be empty in a list
	Object source.Object
	Reader *Reader
	Value  any
}

// Combine makes one archive of several: a list, or a map of parts by their names
// (docs/format/msglc.md, "Combined archives"). The archives are copied byte for byte, whatever their codec, and just
// they, not what follows them in an object; the codec of the options is that of the new header and table of contents.
//
// All parts are looked at before anything is written. No parts, a name in a list or one that is not UTF-8, and a part of
// two sources are [fault.Invalid], a name that occurs twice is [fault.Conflict], a part that is no archive, has another
// magic than the options say or ends early is [fault.Corrupt].
func Combine(ctx context.Context, dst Target, parts []Part, o *CombineOptions) error {
	s, err := o.write().settings()
	if err != nil {
		return err
	}
	c := combiner{ctx: ctx, s: s, dst: dst, isMap: o.named()}
	if err := c.check(parts); err != nil {
		return err
	}
	if err := beginArchive(dst, s.magic); err != nil {
		return err
	}
	return c.write(parts)
}

// combiner writes the payload, from some part on, and the table of contents of a combined archive.
type combiner struct {
	ctx     context.Context
	s       writeSettings
	dst     Target
	isMap   bool
	entries []combinedEntry
	size    int64 // bytes of payload so far
	checked []header
}

// combinedEntry is a child in the table of contents.
type combinedEntry struct {
	name   []byte // encoded; nil in a list
	offset int64
}

// check looks at the parts: their names, those of the entries so far included, and what they are made of.
func (c *combiner) check(parts []Part) error {
	if len(parts) == 0 {
		return fault.New(fault.Invalid, "msglc", "nothing to combine: an archive without parts cannot be read")
	}
	taken := make(map[string]bool)
	var canonical []byte
	for _, e := range c.entries {
		canonical = canonicalKey(canonical[:0], c.s.codec, e.name)
		taken[string(canonical)] = true
	}
	for i := range parts {
		p := &parts[i]
		if !c.isMap && p.Name != "" {
			return fault.New(fault.Invalid, "msglc", "part %d has the name %q, the parts of a list have none", i, p.Name)
		}
		if !utf8.ValidString(p.Name) {
			return fault.New(fault.Invalid, "msglc", "part %d: the name %q is not UTF-8", i, p.Name)
		}
		if c.isMap {
			canonical = canonicalKey(canonical[:0], c.s.codec, value.AppendString(nil, c.s.codec, p.Name))
			if taken[string(canonical)] {
				return fault.New(fault.Conflict, "msglc", "two parts have the name %q", p.Name)
			}
			taken[string(canonical)] = true
		}
		h, err := c.checkPart(p)
		if err != nil {
			return err
		}
		c.checked = append(c.checked, h)
	}
	return nil
}

// checkPart returns the header of a part that is an archive already.
func (c *combiner) checkPart(p *Part) (h header, err error) {
	sources := 0
	for _, given := range [...]bool{p.Object != nil, p.Reader != nil, p.Value != nil} {
		if given {
			sources++
		}
	}
	switch {
	case sources > 1:
		return h, fault.New(fault.Invalid, "msglc", "part %q has more than one source", p.Name)
	case p.Object != nil:
		h, err = readPrefix(c.ctx, p.Object, c.s.magic)
		return h, fault.Locate(err, p.Object.Name(), "", 0)
	case p.Reader != nil:
		r := p.Reader
		bad := func(class error, format string, args ...any) error {
			return fault.New(class, "msglc", format, args...).In(r.s.obj.Name())
		}
		if r.start < 0 {
			return h, bad(fault.Invalid, "a plain %s value, where an archive is due", r.h.codec)
		}
		if r.magic != c.s.magic {
			return h, bad(fault.Corrupt, "magic %q, expected %q", logicalMagic(r.magic[:]), logicalMagic(c.s.magic[:]))
		}
		return r.h, nil
	}
	return h, nil
}

// readPrefix reads and checks the prefix of the archive that obj begins with, and that obj holds all of it.
func readPrefix(ctx context.Context, obj source.Object, magic [MagicSize]byte) (h header, err error) {
	p := make([]byte, min(PrefixSize, obj.Size()))
	if err := obj.ReadAt(ctx, p, 0); err != nil {
		return h, err
	}
	bad := func(off int64, format string, args ...any) (header, error) {
		return h, fault.New(fault.Corrupt, "msglc", format, args...).At(off)
	}
	if err := checkMagic(p, magic); err != nil {
		return h, err
	}
	if len(p) < PrefixSize {
		return bad(0, "header ends after %d of %d bytes", len(p)-MagicSize, PrefixSize-MagicSize)
	}
	if h, err = parseHeader(p[MagicSize:]); err != nil {
		return h, err
	}
	if n := h.archiveSize(); n > obj.Size() {
		return bad(MagicSize, "archive of %d bytes, %d are there", n, obj.Size())
	}
	return h, nil
}

// archiveSize is the length of an archive in bytes.
func (h header) archiveSize() int64 { return PrefixSize + h.tocStart + h.tocSize }

// write copies the parts, which are checked, behind what the payload has, and ends the archive.
func (c *combiner) write(parts []Part) error {
	for i := range parts {
		e := combinedEntry{offset: c.size}
		if c.isMap {
			e.name = value.AppendString(nil, c.s.codec, parts[i].Name)
		}
		if err := c.copyPart(&parts[i], c.checked[i]); err != nil {
			return err
		}
		c.entries = append(c.entries, e)
	}
	h := header{codec: c.s.codec, tocStart: c.size}
	var err error
	if h.tocSize, err = c.writeTOC(); err != nil {
		return err
	}
	_, err = c.dst.WriteAt(appendHeader(nil, h), MagicSize)
	return err
}

func (c *combiner) copyPart(p *Part, h header) error {
	switch {
	case p.Object != nil:
		return fault.Locate(c.copy(p.Object, 0, h.archiveSize()), p.Object.Name(), "", 0)
	case p.Reader != nil:
		obj := p.Reader.s.obj
		return fault.Locate(c.copy(obj, p.Reader.start, h.archiveSize()), obj.Name(), "", 0)
	}
	s := c.s
	if s.progress != nil {
		s.progress = func(done int64) { c.s.progress(c.size + PrefixSize + done) }
	}
	w, err := newWriter(c.ctx, inner{c.dst, PrefixSize + c.size}, s)
	if err != nil {
		return err
	}
	if err := w.WriteValue(p.Value); err != nil {
		return err
	}
	if h, err = w.finish(); err != nil {
		return err
	}
	c.size += h.archiveSize()
	return nil
}

// Copier is a Target that appends bytes of an object by itself, such as a store that has both. Copy appends the n bytes of
// obj from start on.
type Copier interface {
	Target
	Copy(ctx context.Context, obj source.Object, start, n int64) error
}

// copy appends bytes of obj to the payload.
func (c *combiner) copy(obj source.Object, off, n int64) error {
	if dst, ok := c.dst.(Copier); ok {
		if err := dst.Copy(c.ctx, obj, off, n); err != nil {
			return err
		}
		c.size += n
		if c.s.progress != nil {
			c.s.progress(c.size)
		}
		return nil
	}
	return eachChunk(c.ctx, obj, off, n, func(p []byte) error {
		if _, err := c.dst.Write(p); err != nil {
			return err
		}
		c.size += int64(len(p))
		if c.s.progress != nil {
			c.s.progress(c.size)
		}
		return nil
	})
}

// writeTOC writes the table of contents and returns its length.
func (c *combiner) writeTOC() (int64, error) {
	buf := value.AppendString(value.AppendMapHeader(nil, c.s.codec, 1), c.s.codec, "t")
	if c.isMap {
		buf = value.AppendMapHeader(buf, c.s.codec, len(c.entries))
	} else {
		buf = value.AppendArrayHeader(buf, c.s.codec, len(c.entries))
	}
	size := int64(0)
	for _, e := range c.entries {
		buf = append(buf, e.name...)
		buf = value.AppendUint(buf, c.s.codec, uint64(e.offset))
		if len(buf) >= tocBuffer {
			if _, err := c.dst.Write(buf); err != nil {
				return 0, err
			}
			size += int64(len(buf))
			buf = buf[:0]
		}
	}
	_, err := c.dst.Write(buf)
	return size + int64(len(buf)), err
}
