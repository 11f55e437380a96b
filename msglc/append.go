package msglc

import (
	"context"
	"io"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// Append adds parts to the combined archive in the file path (docs/format/msglc.md, "Combined archives"). It keeps its
// codec and magic, which the options must not contradict, and its children as they are; Named must say whether it is a
// map. The file is replaced by a new one when that is complete, so that whenever the process or the system stops, the
// file is the old archive or the new one; it takes the room of both meanwhile. Appends to one file at the same time
// wait for one another, by an advisory lock that ends with the process (flock). Where the system or the file system
// has none, they are for the caller to keep apart; mostly the later one fails with [fault.Changed].
//
// Errors of the parts are those of [Combine]. A file that is missing is [fault.NotFound], one that is no combined
// archive, or a list where a map is due, [fault.Invalid], one of another codec than the options name
// [fault.UnsupportedCodec].
func Append(ctx context.Context, path string, parts []Part, o *CombineOptions) error {
	lock, err := lockFile(ctx, path)
	if err != nil {
		return fault.Locate(err, path, "", 0)
	}
	if lock != nil {
		defer lock.Close()
	}
	old, err := source.OpenFile(path)
	if err != nil {
		return err
	}
	defer old.Close()
	return fault.Locate(appendTo(ctx, old, path, parts, o), path, "", 0)
}

func appendTo(ctx context.Context, old source.Object, path string, parts []Part, o *CombineOptions) error {
	s, err := o.write().settings()
	if err != nil {
		return err
	}
	h, err := readPrefix(ctx, old, s.magic)
	if err != nil {
		return err
	}
	if o != nil && o.Codec != 0 && o.Codec != h.codec {
		return fault.New(fault.UnsupportedCodec, "msglc", "combined archive of codec %s, %s was demanded", h.codec, o.Codec).At(MagicSize)
	}
	s.codec = h.codec
	isMap, entries, err := readCombined(ctx, old, PrefixSize+h.tocStart, h, s)
	if err != nil {
		return err
	}
	if isMap != o.named() {
		kind, other := value.Array, "names are for maps"
		if isMap {
			kind, other = value.Map, "each part needs a name"
		}
		return fault.New(fault.Invalid, "msglc", "the combined archive is a %s: %s", kind, other)
	}
	c := combiner{ctx: ctx, s: s, isMap: isMap, entries: entries}
	if err := c.check(parts); err != nil {
		return err
	}
	f, err := source.CreateAtomic(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	c.dst, c.size = f, -PrefixSize
	if err := c.copy(old, 0, PrefixSize+h.tocStart); err != nil {
		return err
	}
	if err := c.write(parts); err != nil {
		return err
	}
	// A read fails when another file has got the name meanwhile, such as that of another append.
	if err := old.ReadAt(ctx, make([]byte, 1), 0); err != nil {
		return err
	}
	return f.Commit()
}

// readCombined reads the table of contents of a combined archive, which stands at start.
func readCombined(ctx context.Context, obj source.Object, start int64, h header, s writeSettings) (isMap bool, entries []combinedEntry, err error) {
	var sc *value.Scanner
	if h.tocSize <= eagerTOC {
		p := make([]byte, h.tocSize)
		if err := obj.ReadAt(ctx, p, start); err != nil {
			return false, nil, err
		}
		sc = value.NewScanner(h.codec, p, s.limits)
	} else {
		sc = value.NewStream(h.codec, source.NewReader(ctx, obj, start, h.tocSize, copyBuffer), h.tocSize, s.limits)
	}
	isMap, entries, err = parseCombined(sc, h)
	if err == nil {
		if err = sc.Next(); err == nil {
			err = fault.New(fault.Corrupt, "msglc", "bytes behind the table of contents").At(sc.Start())
		} else if err == io.EOF {
			err = nil
		}
	}
	return isMap, entries, fault.Shift(err, start)
}

// parseCombined reads one node, which must be that of a combined archive.
func parseCombined(sc *value.Scanner, h header) (isMap bool, entries []combinedEntry, err error) {
	other := func(format string, args ...any) error {
		e := fault.New(fault.Invalid, "msglc", format, args...)
		e.Msg = "not a combined archive: " + e.Msg
		return e.At(sc.Start())
	}
	if err := sc.Next(); err != nil {
		return false, nil, err
	}
	if sc.Kind != value.Map {
		return false, nil, other("its table of contents is of kind %s", sc.Kind)
	}
	found := false
	for {
		if err := sc.Next(); err != nil {
			return false, nil, err
		}
		if sc.Kind == value.End {
			break
		}
		isT := sc.Kind == value.String && string(sc.Data) == "t"
		if !isT || found {
			if err := skipRest(sc); err != nil { // of a key that is a container
				return false, nil, err
			}
			if err := sc.Skip(); err != nil {
				return false, nil, err
			}
			continue
		}
		if err := sc.Next(); err != nil {
			return false, nil, err
		}
		if sc.Kind != value.Array && sc.Kind != value.Map {
			return false, nil, other("t is of kind %s", sc.Kind)
		}
		found, isMap = true, sc.Kind == value.Map
		if entries, err = parseOffsets(sc, isMap, h, other); err != nil {
			return false, nil, err
		}
	}
	if len(entries) == 0 {
		return false, nil, other("it has no children")
	}
	return isMap, entries, nil
}

// parseOffsets reads the children behind the head of t.
func parseOffsets(sc *value.Scanner, isMap bool, h header, other func(string, ...any) error) (entries []combinedEntry, err error) {
	for {
		var e combinedEntry
		if isMap {
			raw, err := sc.Raw()
			if err != nil {
				return nil, err
			}
			e.name = append([]byte(nil), raw...)
		}
		if !isMap || len(e.name) > 0 {
			if err := sc.Next(); err != nil {
				return nil, err
			}
		}
		if sc.Kind == value.End {
			return entries, nil
		}
		if sc.Kind != value.Uint {
			return nil, other("a child is of kind %s, not the offset of an archive", sc.Kind)
		}
		if sc.Bits > maxPosition || int64(sc.Bits)+PrefixSize >= h.tocStart {
			return nil, fault.New(fault.Corrupt, "msglc", "child archive at %d, in a payload of %d bytes", sc.Bits, h.tocStart).At(sc.Start())
		}
		e.offset = int64(sc.Bits)
		entries = append(entries, e)
	}
}

// skipRest passes the rest of the value whose first token was read.
func skipRest(sc *value.Scanner) error {
	depth := sc.Depth()
	if sc.Kind != value.Array && sc.Kind != value.Map {
		depth++
	}
	for sc.Kind == value.Tag || sc.Depth() >= depth {
		if err := sc.Next(); err != nil {
			return err
		}
	}
	return nil
}
