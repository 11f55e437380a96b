package msglc

import (
	"context"
	"encoding/binary"
	"io"

	"github.com/cespare/xxhash/v2"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// A sidecar is the table of contents of an encoded value that is left where it is (docs/format/msglc.md, "Sidecar").
// It is ours alone; the original has none. Numbers are unsigned, little-endian.
//
//	0        16      17     24          32          40          48
//	+--------+-------+------+-----------+-----------+-----------+------------
//	| magic  | codec | zero | payload's | XXH64 of  | XXH64 of  | table of
//	|        |       |      | size      | its head  | its tail  | contents…
//	+--------+-------+------+-----------+-----------+-----------+------------
//
//	-24          -16         -8
//	+-----------+-----------+-----------+
//	| table's   | XXH64 of  | XXH64 of  |   The last is that of the first 48 bytes and the 16 in front of it.
//	| size      | the table | the rest  |
//	+-----------+-----------+-----------+
//
// codec is 1 for msgpack, 2 for CBOR. Head and tail are the first and the last 64 KiB of the payload, all of it when
// it is shorter. They and the size tell whether the payload is still the one that was indexed, for two small reads; a
// change in the middle that keeps the size is not seen, and a table that is read then leads to the wrong bytes, which
// mostly do not decode.
const (
	sidecarMagic   = "spile-sidecar-1\n"
	sidecarHead    = 48
	sidecarTrailer = 24
	sidecarPin     = 64 << 10
)

// SidecarName is the name of the sidecar that belongs to a payload file.
func SidecarName(path string) string { return path + ".toc" }

// WriteSidecar writes the table of contents of payload, an encoded value of the codec that the options name, in a file
// of its own, for [OpenSidecar]. The payload is read once. Errors are those of [Index]; the magic of the options goes
// nowhere.
func WriteSidecar(ctx context.Context, w io.Writer, payload source.Object, o *WriteOptions) error {
	s, err := o.settings()
	if err == nil {
		err = writeSidecar(ctx, w, payload, s)
	}
	return fault.Locate(err, payload.Name(), "", 0)
}

func writeSidecar(ctx context.Context, w io.Writer, payload source.Object, s writeSettings) error {
	b := newTOCBuilder(&s)
	defer b.close()
	done := int64(0)
	err := eachChunk(ctx, payload, 0, payload.Size(), func(p []byte) error {
		if err := b.write(p); err != nil {
			return err
		}
		done += int64(len(p))
		if s.progress != nil {
			s.progress(done)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := b.finish(); err != nil {
		return err
	}
	head, err := sidecarHeadOf(ctx, payload, s.codec)
	if err != nil {
		return err
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	sum := xxhash.New()
	size, err := b.writeTOC(io.MultiWriter(sum, w))
	if err != nil {
		return err
	}
	trailer := binary.LittleEndian.AppendUint64(nil, uint64(size))
	trailer = binary.LittleEndian.AppendUint64(trailer, sum.Sum64())
	trailer = binary.LittleEndian.AppendUint64(trailer, sidecarSum(head, trailer))
	_, err = w.Write(trailer)
	return err
}

// sidecarHeadOf makes the head of the sidecar of a payload.
func sidecarHeadOf(ctx context.Context, payload source.Object, c value.Codec) ([]byte, error) {
	size := payload.Size()
	head := make([]byte, 24, sidecarHead)
	copy(head, sidecarMagic)
	head[16] = byte(c)
	head = binary.LittleEndian.AppendUint64(head, uint64(size))
	pin := make([]byte, min(size, sidecarPin))
	for _, off := range [...]int64{0, size - int64(len(pin))} {
		if err := payload.ReadAt(ctx, pin, off); err != nil {
			return nil, err
		}
		head = binary.LittleEndian.AppendUint64(head, xxhash.Sum64(pin))
	}
	return head, nil
}

// sidecarSum is the last number of a sidecar, made of its head and the first numbers of its trailer.
func sidecarSum(head, trailer []byte) uint64 {
	d := xxhash.New()
	d.Write(head)
	d.Write(trailer[:16])
	return d.Sum64()
}

// sidecar is what a sidecar says of itself.
type sidecar struct {
	codec    value.Codec
	tocStart int64 // in the sidecar
	tocSize  int64
	tocSum   uint64 // XXH64 of the table
}

// readSidecar reads head and trailer of a sidecar, and compares what they say of the payload with the payload: a
// difference is [fault.Changed].
func readSidecar(ctx context.Context, payload, obj source.Object) (sidecar, error) {
	bad := func(off int64, format string, args ...any) (sidecar, error) {
		return sidecar{}, fault.New(fault.Corrupt, "msglc", format+indexAgain, args...).In(obj.Name()).At(off)
	}
	size := obj.Size()
	if size < sidecarHead+sidecarTrailer {
		return bad(0, "sidecar of %d bytes, at least %d", size, sidecarHead+sidecarTrailer)
	}
	parts, err := source.Fetch(ctx, obj, []source.Range{
		{Start: 0, End: sidecarHead}, {Start: size - sidecarTrailer, End: size},
	})
	if err != nil {
		return sidecar{}, err
	}
	head, trailer := parts[0], parts[1]
	if string(head[:16]) != sidecarMagic {
		return bad(0, "no sidecar: it begins with %q, expected %q", head[:16], sidecarMagic)
	}
	number := binary.LittleEndian.Uint64
	if got, want := sidecarSum(head, trailer), number(trailer[16:]); got != want {
		return bad(size-8, "sidecar has the hash %016x, %016x is stored", got, want)
	}
	s := sidecar{
		codec: value.Codec(head[16]), tocStart: sidecarHead, tocSize: size - sidecarHead - sidecarTrailer,
		tocSum: number(trailer[8:]),
	}
	if s.codec != value.Msgpack && s.codec != value.CBOR {
		return bad(16, "sidecar of the unknown codec %d", head[16])
	}
	if n := number(trailer); n != uint64(s.tocSize) || n == 0 {
		return bad(size-sidecarTrailer, "table of contents of %d bytes in a sidecar with room for %d", n, s.tocSize)
	}
	changed := func(format string, args ...any) (sidecar, error) {
		e := fault.New(fault.Changed, "msglc", format, args...).In(payload.Name())
		e.Where = "sidecar " + obj.Name()
		return sidecar{}, e
	}
	if n := number(head[24:]); n != uint64(payload.Size()) {
		return changed("made for a file of %d bytes, the file has %d"+indexAgain, n, payload.Size())
	}
	now, err := sidecarHeadOf(ctx, payload, s.codec)
	if err != nil {
		return sidecar{}, err
	}
	for i, part := range [...]string{"first", "last"} {
		at := 32 + 8*i
		if was, is := number(head[at:]), number(now[at:]); was != is {
			return changed("made for a file whose %s bytes have the hash %016x, they have %016x"+indexAgain, part, was, is)
		}
	}
	return s, nil
}

// indexAgain is what to do about a sidecar that is of no use.
const indexAgain = "; index the file again, or read it without the sidecar"

// checkTOC compares the table of contents with its hash.
func (s sidecar) checkTOC(ctx context.Context, obj source.Object) error {
	sum := xxhash.New()
	err := eachChunk(ctx, obj, s.tocStart, s.tocSize, func(p []byte) error {
		sum.Write(p)
		return nil
	})
	if err != nil {
		return err
	}
	if got := sum.Sum64(); got != s.tocSum {
		return fault.New(fault.Corrupt, "msglc", "table of contents has the hash %016x, %016x is stored", got, s.tocSum).
			In(obj.Name()).At(s.tocStart)
	}
	return nil
}
