package series

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/spilehq/spile/fault"
)

// zstdOf compresses p.
func zstdOf(t testing.TB, p []byte, o ...zstd.EOption) []byte {
	t.Helper()
	e, err := zstd.NewWriter(nil, o...)
	if err != nil {
		t.Fatal(err)
	}
	return e.EncodeAll(p, nil)
}

// frameOf is a frame by hand: the descriptor and what follows it.
func frameOf(head ...byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, zstdMagic), head...)
}

// blockOf is the head of a block.
func blockOf(last bool, kind, size int) []byte {
	n := size<<3 | kind<<1
	if last {
		n |= 1
	}
	return []byte{byte(n), byte(n >> 8), byte(n >> 16)}
}

func TestZstdFrames(t *testing.T) {
	text := bytes.Repeat([]byte("hello, world. "), 100)
	good := zstdOf(t, text)
	half := zstdOf(t, text[:700])
	rest := zstdOf(t, text[700:], zstd.WithEncoderCRC(false))
	skippable := []byte{0x5f, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3}
	join := func(p ...[]byte) []byte { return bytes.Join(p, nil) }
	badSum := bytes.Clone(good)
	badSum[len(badSum)-1] ^= 1
	run := func(window byte, n int) []byte { // blocks of 128 KiB, each a run of one byte
		p := frameOf(0, window)
		for i := range n {
			p = append(append(p, blockOf(i == n-1, 1, zstdBlock)...), 'a')
		}
		return p
	}
	for _, tt := range []struct {
		name   string
		stored []byte
		want   []byte // nil: it fails
		size   int    // that is declared, when it is not that of want
		class  error
	}{
		{name: "one frame", stored: good, want: text},
		{name: "two frames", stored: join(half, rest), want: text},
		{name: "an empty frame", stored: join(frameOf(0x20, 0, 1, 0, 0), good), want: text},
		{name: "skippable frames", stored: join(skippable, half, skippable, rest, skippable), want: text},
		{name: "runs", stored: run(0x80, 8), want: bytes.Repeat([]byte{'a'}, 8*zstdBlock)},
		{name: "a dictionary of the number 0", stored: frameOf(0x21, 0, 2, 17, 0, 0, 'h', 'i'), want: []byte("hi")},
		{name: "a window of 64 MiB", stored: join(frameOf(0, 16<<3), blockOf(true, 0, 2), []byte("hi")), want: []byte("hi")},

		{name: "a window above 64 MiB", stored: join(frameOf(0, 16<<3|1), blockOf(true, 0, 2), []byte("hi")), size: 2, class: fault.Limit},
		{name: "a content above 64 MiB", stored: join(frameOf(0xa0, 1, 0, 0, 4), blockOf(true, 0, 2), []byte("hi")), size: 2, class: fault.Limit},
		{name: "a dictionary", stored: frameOf(0x21, 7, 2, 17, 0, 0, 'h', 'i'), size: 2, class: fault.Corrupt},
		{name: "a wrong sum", stored: badSum, size: len(text), class: fault.Corrupt},
		{name: "one byte behind", stored: join(good, []byte{0}), size: len(text), class: fault.Corrupt},
		{name: "three bytes behind", stored: join(good, []byte{0x28, 0xb5, 0x2f}), size: len(text), class: fault.Corrupt},
		{name: "other bytes behind", stored: join(good, []byte("other bytes")), size: len(text), class: fault.Corrupt},
		{name: "a magic number behind", stored: join(good, good[:4]), size: len(text), class: fault.Corrupt},
		{name: "a cut frame", stored: good[:len(good)-5], size: len(text), class: fault.Corrupt},
		{name: "a cut skippable frame", stored: join(good, skippable[:10]), size: len(text), class: fault.Corrupt},
		{name: "no frame", stored: text, size: len(text), class: fault.Corrupt},
		{name: "skippable frames alone", stored: skippable, size: 1, class: fault.Corrupt},
		{name: "more than is declared", stored: good, size: len(text) - 1, class: fault.Corrupt},
		{name: "less than is declared", stored: good, size: len(text) + 1, class: fault.Corrupt},
		{name: "more than the frame says", stored: join(frameOf(0x20, 1), blockOf(true, 0, 2), []byte("hi")), size: 2, class: fault.Corrupt},
		{name: "a reserved bit", stored: join(frameOf(0x28, 2), blockOf(true, 0, 2), []byte("hi")), size: 2, class: fault.Corrupt},
		{name: "a reserved block", stored: join(frameOf(0x20, 2), blockOf(true, 3, 2), []byte("hi")), size: 2, class: fault.Corrupt},
		{name: "a long block", stored: join(frameOf(0, 0x80), blockOf(true, 1, zstdBlock+1), []byte("h")), size: zstdBlock + 1, class: fault.Corrupt},
		{name: "nothing but a size", stored: join(frameOf(0xa0, 0, 0, 0, 4), blockOf(true, 0, 0)), size: maxChunk, class: fault.Corrupt},
		{name: "a size that is not there", stored: good, size: maxChunk, class: fault.Corrupt},
		{name: "runs that are not enough", stored: run(0x80, 511), size: maxChunk, class: fault.Corrupt},
	} {
		size := tt.size
		if tt.want != nil {
			size = len(tt.want)
		}
		ref := payloadRef{Offset: 77, Stored: uint32(len(tt.stored)), Decoded: uint32(size), Checksum: xxhash.Sum64(tt.stored), Compression: compressionZstd}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := ref.decode(tt.stored)
		runtime.ReadMemStats(&after)
		if tt.want != nil {
			if err != nil || !bytes.Equal(got, tt.want) {
				t.Errorf("%s: %d bytes, %v", tt.name, len(got), err)
			}
			continue
		}
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Class != tt.class || Check(err) != 43 || f.Offset != 77 {
			t.Errorf("%s: %v, want %v of check 43", tt.name, err, tt.class)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 && size == maxChunk {
			t.Errorf("%s: %d bytes were taken", tt.name, n)
		}
	}
}

// Whatever the frames are, the decoder takes nothing that their shape does not allow for.
func FuzzZstdShape(f *testing.F) {
	f.Add(zstdOf(f, []byte("hello")))
	f.Add(zstdOf(f, bytes.Repeat([]byte("hello"), 1000), zstd.WithWindowSize(1<<10)))
	f.Add(append(frameOf(0x20, 2, 17, 0, 0, 'h', 'i'), 0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0))
	f.Fuzz(func(t *testing.T, p []byte) {
		s, failed := shapeOf(p)
		got, err := decoder().DecodeAll(p, make([]byte, 0, 1<<20))
		if err != nil {
			return
		}
		if failed == nil && uint64(len(got)) > s.most {
			t.Fatalf("%d bytes, at most %d", len(got), s.most)
		}
	})
}
