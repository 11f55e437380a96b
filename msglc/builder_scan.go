package msglc

import (
	"io"
	"math"

	"github.com/spilehq/spile/value"
)

// The loops that most bytes of a payload go through. What they cannot do, a head or a string that goes on in the next
// chunk among it, they leave to [tocBuilder.head].

// batchSize is the number of items whose traits are put together before their list looks at them.
const batchSize = 64

// items takes the scalars that come next in the list f, from chunk p[i] on, and returns where it stopped.
func (b *tocBuilder) items(f *frame, p []byte, i int) (int, error) {
	if len(p) < maxScalar {
		return i, nil
	}
	whole := p[:len(p)-maxScalar+1] // the scalars that begin here end in p
	for i < len(whole) {
		before := i
		if b.run.count > 0 {
			i = b.sameItems(f, whole, i)
		}
		more := true
		if f.left != 0 && i < len(whole) {
			i, more = b.mixedItems(f, whole, i)
		}
		if err := b.blocks.settle(); err != nil {
			return i, err
		}
		if i == before || !more || f.left == 0 || len(b.children.mem) > b.children.bound {
			break
		}
	}
	return i, nil
}

// mixedItems takes up to batchSize scalars. It reports false when it came to something else.
func (b *tocBuilder) mixedItems(f *frame, p []byte, i int) (next int, more bool) {
	n := batchSize
	if f.left >= 0 && f.left < batchSize {
		n = int(f.left)
	}
	cut := math.MaxInt
	if f.or&notTrivial == 0 && f.group-b.base < int64(math.MaxInt/2)-b.threshold {
		cut = int(f.group - b.base + b.threshold)
	}
	or, and := traits(0), ^traits(0)
	k, done := 0, 0
	scalars, batch := b.scalars, &b.batch
	for k < n && i < len(p) {
		t := scalars[p[i]]
		if t == 0 {
			break
		}
		or |= t
		and &= t
		size := int(t & sizeTrait)
		batch[k%batchSize] = byte(size)
		k++
		i += size
		if i >= cut {
			f.n += int64(k - done)
			b.closeGroup(f, b.base+int64(i))
			done = k
			cut = i + int(b.threshold)
		}
	}
	if k == 0 {
		return i, false
	}
	f.n += int64(k - done)
	f.count += int64(k)
	f.left -= int64(k)
	f.or |= or
	f.and &= and
	if size := or & sizeTrait; size == and&sizeTrait {
		if b.run.size != int64(size) {
			b.flushRun()
			b.run.size = int64(size)
		}
		b.run.count += int64(k)
	} else {
		b.flushRun()
		b.children.mem = append(b.children.mem, b.batch[:k]...)
	}
	return i, k == n
}

// sameItems takes the scalars that have the size of those before. The distance from one to the next is known before
// its first byte is, so this is four times as fast as mixedItems on numbers of one byte.
func (b *tocBuilder) sameItems(f *frame, p []byte, i int) int {
	t := b.scalars[p[i]]
	size := int(t & sizeTrait)
	if size == 0 || int64(size) != b.run.size {
		return i
	}
	most := 1 << 16
	if f.left >= 0 && f.left < int64(most) {
		most = int(f.left)
	}
	pos := b.base + int64(i)
	scalars := b.scalars
	k := 0
	for k < most && i < len(p) && scalars[p[i]] == t {
		i += size
		k++
	}
	n := int64(k)
	b.run.count += n
	f.count += n
	f.left -= n
	f.or |= t
	f.and &= t
	if f.or&notTrivial != 0 {
		return i
	}
	for n > 0 {
		need := (f.group + b.threshold - pos + int64(size) - 1) / int64(size)
		if need > n {
			f.n += n
			break
		}
		n -= need
		f.n += need
		pos += need * int64(size)
		b.closeGroup(f, pos)
	}
	return i
}

// pairs takes the pairs of scalars that come next in the map f, from chunk p[i] on, and returns where it stopped.
func (b *tocBuilder) pairs(f *frame, p []byte, i int) int {
	if f.odd {
		return i
	}
	for f.left != 0 && i <= len(p)-2*maxScalar && len(b.children.mem) <= b.children.bound {
		k := int(b.scalars[p[i]] & sizeTrait)
		if k == 0 {
			break
		}
		t := b.scalars[p[i+k]]
		if t == 0 {
			break
		}
		size := int(t & sizeTrait)
		mem := append(b.children.mem, byte(k))
		mem = append(mem, p[i:i+k]...)
		b.children.mem = append(mem, byte(size))
		f.or |= t
		f.and &= t
		f.count++
		f.left -= 2
		i += k + size
	}
	return i
}

// A container that is smaller than the threshold is a leaf, whatever is in it, so nothing is lost by passing over it
// at once. Whether it is that small shows when it is tried: a try looks at less than the threshold. None is made when
// the container before it, in the same one, was too large. Tries go on only while those that failed have looked at
// fewer bytes than have gone by, so that the whole work stays linear.

// The loop is not [value.Skip], which it resembles. A leaf of thousands of bytes must not hide nesting beyond the
// limit, so containers are counted on the way, in the third byte of a step; value.Skip has no use for that, and every
// reader would pay for it. And a try that fails has to say how far it looked, where value.Skip says that more bytes
// are needed. What is rare, parts of indefinite length, does go there.

// step is what passing over a value does by its first byte: advance by the low byte, add the second byte less one to
// the values to come, add the third to the containers and tags seen.
type step uint32

const (
	slowStep step = 1 << 31 // a length or count behind the first byte, an indefinite length, a break, no value
	len8Step step = 1 << 30 // slow, but only for one byte of length
)

var steps = [...][256]step{value.Msgpack: stepsOf(value.Msgpack), value.CBOR: stepsOf(value.CBOR)}

func stepsOf(c value.Codec) (t [256]step) {
	var p [value.MaxHead]byte
	for first := range t {
		p[0] = byte(first)
		h, err := value.ReadHead(c, p[:])
		if err != nil || h.Kind == value.End || h.Indefinite {
			t[first] = slowStep
			continue
		}
		adv, values, nest, s := h.Size, 0, 0, step(0)
		switch h.Kind {
		case value.String, value.Bytes, value.Ext:
			adv += int(h.Arg)
			if !contentByFirst(h) {
				s = slowStep
				if h.Kind != value.Ext && h.Size == 2 {
					s |= len8Step
				}
			}
		case value.Array, value.Map:
			values, nest = int(h.Arg), 1
			if h.Kind == value.Map {
				values *= 2
			}
			if h.Size > 1 {
				s = slowStep
			}
		case value.Tag:
			values, nest = 1, 1
		}
		t[first] = s | step(nest)<<16 | step(values)<<8 | step(adv)
	}
	return t
}

// skip returns the length of the container at p[i] when it ends in p, is smaller than the threshold and holds nothing
// that needs a closer look; else 0.
func (b *tocBuilder) skip(p []byte, i int) int {
	if b.wasted > b.base+int64(i)+maxWaste || len(b.frames) > 0 && b.frames[len(b.frames)-1].large {
		return 0
	}
	w := p[i:]
	if int64(len(w)) >= b.threshold {
		w = w[:b.threshold-1]
	}
	n, looked := skipContainer(b.codec, w, b.depth-b.nested())
	if n == 0 {
		b.wasted += int64(looked)
	}
	return n
}

// maxWaste is what tries may look at in vain before the first one that succeeds.
const maxWaste = 64 << 10

// skipContainer returns the length of the container at the start of p. It returns 0, and how far it came, when p does
// not hold all of it, when it may be nested deeper than depth, and when something in it breaks the rules.
func skipContainer(c value.Codec, p []byte, depth int) (n, looked int) {
	t := &steps[c]
	pos, need, nested := 0, 1, 0
	for need > 0 {
		if pos >= len(p) {
			return 0, len(p)
		}
		s := t[p[pos]]
		if s < len8Step {
			pos += int(s & 0xff)
			need += int(s>>8&0xff) - 1
			nested += int(s >> 16)
			continue
		}
		if s&len8Step != 0 && pos+1 < len(p) {
			pos += 2 + int(p[pos+1])
			need--
			continue
		}
		h, err := value.ReadHead(c, p[pos:])
		switch {
		case err != nil && err != io.ErrUnexpectedEOF || h.Kind == value.End:
			return 0, pos
		case err != nil:
			return 0, len(p)
		case h.Indefinite:
			return skipIndefinite(c, p, depth)
		case h.HasContent():
			if h.Arg > uint64(len(p)-pos) {
				return 0, pos
			}
			pos += int(h.Arg)
		case h.Kind == value.Array || h.Kind == value.Map:
			if h.Arg > uint64(len(p)-pos) { // each value takes a byte at least
				return 0, pos
			}
			need += int(h.Arg)
			if h.Kind == value.Map {
				need += int(h.Arg)
			}
			nested++
		}
		pos += h.Size
		need--
		if need > len(p)-pos || nested > depth {
			return 0, pos
		}
	}
	if pos > len(p) || nested > depth {
		return 0, len(p)
	}
	return pos, pos
}

// skipIndefinite is skipContainer for CBOR with parts of indefinite length. Since a nested value takes a byte at least,
// it does not look at the depth of short ones.
func skipIndefinite(c value.Codec, p []byte, depth int) (n, looked int) {
	n, err := value.Skip(c, p, 1, value.Limits{Depth: depth})
	if err != nil || n > depth {
		return 0, len(p)
	}
	return n, n
}
