package jq

import (
	"github.com/itchyny/gojq"

	"github.com/spilehq/spile/value"
)

// walk is the results of a path for one input, found one by one: for gojq an iterator, for us a stack of the lists and
// maps whose children are being passed.
type walk struct {
	path  *path
	args  []any
	stack []level
}

// level gives values, one a call, for which the steps from step on are left.
type level struct {
	next func() (any, bool)
	step int
}

// walk begins the path at v.
func (p *path) walk(v any, args []any) gojq.Iter {
	args = append([]any(nil), args...) // gojq uses the slice again
	w := &walk{path: p, args: args}
	w.stack = append(w.stack, level{single(v), 0})
	return w
}

func single(v any) func() (any, bool) {
	done := false
	return func() (any, bool) {
		if done {
			return nil, false
		}
		done = true
		return v, true
	}
}

// Next gives the next result: a place or a value, or an error, behind which there is nothing.
func (w *walk) Next() (any, bool) {
	for len(w.stack) > 0 {
		top := w.stack[len(w.stack)-1]
		v, ok := top.next()
		if !ok {
			w.stack = w.stack[:len(w.stack)-1]
			continue
		}
		err, failed := v.(error)
		if !failed {
			var found bool
			if v, found, err = w.follow(v, top.step); found {
				return v, true
			}
		}
		if err != nil {
			w.stack = nil
			return err, true
		}
	}
	return nil, false
}

// follow takes the steps from i on up to the end, found, or to a step with several results, which are the next level
// then, or to one without.
func (w *walk) follow(v any, i int) (_ any, found bool, err error) {
	for ; i < len(w.path.steps); i++ {
		p, ok := v.(*place)
		if !ok {
			return nil, false, w.handOver(v, i)
		}
		shape, err := p.shape()
		if err != nil {
			return nil, false, err
		}
		s := w.path.steps[i]
		switch {
		case shape == value.Invalid:
			if v, err = p.decode(); err != nil {
				return nil, false, err
			}
			return nil, false, w.handOver(v, i)
		case s.kind == stepEach:
			next, err := p.each(shape)
			if err == nil {
				w.stack = append(w.stack, level{next, i + 1})
			}
			return nil, false, err
		}
		var fits bool
		if v, fits, err = w.take(p, shape, s); err != nil {
			return nil, false, err
		}
		if !fits {
			return nil, false, w.misfit(p, shape, i)
		}
	}
	return v, true, nil
}

// take takes a step with one result. It does not fit where jq has an error for it, or a rule that is left to gojq.
func (w *walk) take(p *place, shape value.Kind, s step) (v any, fits bool, err error) {
	if s.kind == stepSlice {
		from, ok := bound(s.from.of(w.args), 0)
		to, ok2 := bound(s.to.of(w.args), maxIndex)
		if !ok || !ok2 || shape != value.Array {
			return nil, false, nil
		}
		v, err := p.slice(from, to)
		return v, true, err
	}
	index := s.index.of(w.args)
	if name, ok := index.(string); ok && shape == value.Map {
		v, err := p.member(name)
		return v, true, err
	}
	if i, ok := number(index); ok && shape == value.Array {
		v, err := p.item(i)
		return v, true, err
	}
	return nil, false, nil
}

// maxIndex is behind the end of every list, and leaves room for the sum with a length.
const maxIndex = 1 << 62

// bound is a bound of a slice.
func bound(v any, absent int64) (int64, bool) {
	if v == nil {
		return absent, true
	}
	i, ok := number(v)
	return max(min(i, maxIndex), -maxIndex), ok
}

// misfit goes on where a step does not fit.
func (w *walk) misfit(p *place, shape value.Kind, i int) error {
	s := w.path.steps[i]
	_, named := s.index.of(w.args).(string)
	_, numbered := number(s.index.of(w.args))
	if s.kind == stepSlice || named || numbered { // it is the kind of the value that does not fit
		fails := s.kind != stepSlice || shape != value.Array
		if fails && s.optional {
			return nil
		}
		if fails {
			if text, err := p.misfit(shape); text != nil || err != nil {
				return first(err, text)
			}
		}
	}
	v, err := p.decode()
	if err != nil {
		return err
	}
	return w.handOver(v, i)
}

func first(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// handOver lets gojq take the steps from i on, from a decoded value.
func (w *walk) handOver(v any, i int) error {
	code, err := w.path.code(i)
	if err != nil {
		return err
	}
	w.stack = append(w.stack, level{code.Run(v, w.args...).Next, len(w.path.steps)})
	return nil
}
