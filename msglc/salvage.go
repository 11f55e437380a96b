package msglc

import (
	"context"
	"errors"
	"fmt"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// SalvageReport says what Salvage kept.
type SalvageReport struct {
	Codec    value.Codec // of the new archive
	Breaks   []Break     // where something is missing or not as it should be, the first thousand; none: nothing is
	Unlisted int64       // how many more

	steps int // in the paths of the breaks
}

// maxBreaks bounds the breaks that are listed, and maxBreakSteps the steps of their paths, which may be long: 16 MB.
const (
	maxBreaks     = 1000
	maxBreakSteps = 1 << 18
)

func (r *SalvageReport) add(b Break) {
	if len(r.Breaks) >= maxBreaks || r.steps > maxBreakSteps {
		r.Unlisted++
		return
	}
	r.steps += len(b.Path)
	r.Breaks = append(r.Breaks, b)
}

// Break is a place where a document breaks off.
type Break struct {
	Offset int64 // in the object
	Path   Path  // of the value that is broken
	Err    error // what is wrong there
	// Cut are the containers around the broken value that are in the new document with what they had before it,
	// outermost first. There are none when nothing was kept of a part, or its bytes are all there.
	Cut []CutContainer
}

// CutContainer is a container that lost what follows a break.
type CutContainer struct {
	Path    Path
	Kind    value.Kind // Array or Map
	Kept    int64      // items or pairs, the one that is cut itself included
	Claimed int64      // that the container says it has; -1 when it does not say
}

// Salvage makes an archive of what is whole in a truncated or damaged one, or in a plain value: every complete value
// before the break. The containers that are open at the break are closed: an array has its complete items, a map its
// complete pairs, and their counts are made right. Behind a break, values are kept where an intact table of contents
// says where they are and they fill their range; without one nothing is looked at there, since without what stands in
// front of them bytes can mean anything. Text that is not UTF-8 is kept as it is and reported. What is found of the
// object is as with [Repair].
//
// A combined archive keeps its parts, each salvaged by itself, and of those at one offset the first: a part in which
// nothing is wrong as it is, one whose table of contents is wrong with a new one. When the table of contents of the whole
// is lost, so are the names of the parts: they become a list. A name that occurs twice or is not UTF-8 is changed.
//
// The object is read twice, since the counts stand in front of what they count. Nothing to keep is [fault.Corrupt].
func Salvage(ctx context.Context, dst Target, obj source.Object, o *WriteOptions) (SalvageReport, error) {
	var r SalvageReport
	w, err := examine(ctx, obj, o)
	if err == nil {
		err = w.refuseMixed()
	}
	switch {
	case err != nil:
	case w.combined:
		r.Codec, err = w.salvageParts(wholeOf(dst), &r, nil, 0)
	default:
		var v *survey
		if v, err = w.surveyAll(); err == nil {
			r.Codec = v.codec
			err = w.salvage(dst, v, &r, nil)
		}
	}
	if n, ok := err.(*nothingKept); ok {
		e := *n.why
		e.Msg = "nothing to salvage: " + e.Msg
		err = &e
	}
	return r, fault.Locate(err, obj.Name(), "", 0)
}

// nothingKept says why there is nothing to keep of an archive. It does not leave the package.
type nothingKept struct{ why *fault.Error }

func (n *nothingKept) Error() string { return n.why.Error() }

func nothing(err error) error {
	e, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	return &nothingKept{e}
}

// salvage writes an archive of what is whole in a plain payload. path leads to it.
func (w *wreck) salvage(dst Target, v *survey, r *SalvageReport, up *trail) error {
	b := Break{Offset: w.start + v.end, Path: up.path()}
	bad := int64(-1) // where text is not UTF-8; in a key, the table may have it right
	if v.whole {
		var err error
		if bad, err = w.badText(v.codec, v.end); err != nil {
			return err
		}
	}
	if !v.whole || bad >= 0 || w.headerOK && w.h.tocStart != v.end {
		if done, err := w.salvageByTable(dst, v.codec, r, up); done || err != nil {
			return err
		}
	}
	switch {
	case !v.whole && len(v.open) == 0:
		return nothing(v.err)
	case !v.whole:
		b = v.report(w.start, up.path())
	case w.headerOK && w.h.tocStart != v.end && w.tocAt(w.h.tocStart, v.codec):
		b.Err = w.corrupt(v.end, "the value ends here, its table of contents follows after %d bytes: bytes inside it are damaged", w.h.tocStart-v.end)
	case !w.archive && v.end != w.size:
		b.Err = w.corrupt(v.end, "%d bytes behind the value", w.size-v.end)
	}
	if b.Err != nil {
		r.add(b)
	}
	if !v.whole {
		var err error
		if bad, err = w.badText(v.codec, v.end); err != nil {
			return err
		}
	}
	if bad >= 0 {
		r.add(Break{Offset: w.start + bad, Path: up.path(), Err: w.notUTF8(bad)})
	}
	s := w.s
	s.codec = v.codec
	out, err := newWriter(w.ctx, dst, s)
	if err != nil {
		return err
	}
	if err := w.copyWhole(out, v); err != nil {
		return out.fail(err)
	}
	return out.Close()
}

// copyWhole writes the payload: what is whole, each open container with a new head.
func (w *wreck) copyWhole(out *Writer, v *survey) error {
	pass := func(from, to int64) error {
		return eachChunk(w.ctx, w.obj, w.start+from, to-from, func(p []byte) error {
			_, err := out.Write(p)
			return err
		})
	}
	if v.whole {
		return pass(0, v.end)
	}
	for i, p := range v.open {
		head := value.AppendArrayHeader(nil, v.codec, int(p.kept))
		if p.isMap {
			head = value.AppendMapHeader(nil, v.codec, int(p.kept))
		}
		if _, err := out.Write(head); err != nil {
			return err
		}
		to := v.end
		if i+1 < len(v.open) {
			to = v.open[i+1].start
		}
		if err := pass(p.items, to); err != nil {
			return err
		}
	}
	return nil
}

// report describes the break for people. start is where the payload starts in the object, path leads to its root.
func (v *survey) report(start int64, path Path) Break {
	b := Break{Offset: start + v.at, Err: v.err}
	path = append(make(Path, 0, len(path)+len(v.open)+1), path...) // the paths of all share their steps
	for i, p := range v.open {
		kind := value.Array
		if p.isMap {
			kind = value.Map
		}
		b.Cut = append(b.Cut, CutContainer{Path: path[:len(path):len(path)], Kind: kind, Kept: p.kept, Claimed: p.claimed})
		key, index := p.key, p.kept-1
		if i == len(v.open)-1 {
			key, index = v.key, p.kept
		}
		step := TextStep(fmt.Sprint(index))
		if p.isMap {
			if len(key) == 0 { // the key itself is broken
				break
			}
			step = keyStep(value.Raw{Codec: v.codec, Data: key})
		}
		path = append(path, step)
	}
	b.Path = path
	return b
}

// keyStep is the step by a key: a text where that says it.
func keyStep(key value.Raw) Step {
	h, err := value.ReadHead(key.Codec, key.Data)
	if err == nil && h.Kind == value.String && !h.Indefinite {
		return TextStep(string(key.Data[h.Size:]))
	}
	return KeyStep(key)
}
