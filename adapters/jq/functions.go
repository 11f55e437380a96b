package jq

import "github.com/itchyny/gojq"

// function lowers a call. The builtins that are told apart here are those whose arguments have the input of the call as
// theirs; all others, and those that the program has a definition of its own for, get their input decoded.
func (w *rewriter) function(t *gojq.Term) (*gojq.Query, bool) {
	f := t.Func
	if isVariable(f) {
		return ofTerm(t), false
	}
	if w.defined[signature{f.Name, len(f.Args)}] > 0 {
		return whole(ofTerm(t)), false
	}
	if len(f.Args) == 0 {
		return w.function0(t)
	}
	args := f.Args
	switch (signature{f.Name, len(args)}) {
	case signature{"select", 1}:
		return call(f.Name, w.truth(args[0])), true
	case signature{"first", 1}, signature{"last", 1}:
		g, lazy := w.query(args[0])
		return call(f.Name, g), lazy
	case signature{"limit", 2}, signature{"skip", 2}, signature{"nth", 2}:
		g, lazy := w.query(args[1])
		return call(f.Name, w.decoded(args[0]), g), lazy
	case signature{"isempty", 1}:
		g, _ := w.query(args[0])
		return call(f.Name, g), false
	case signature{"any", 1}, signature{"all", 1}:
		return w.quantifier(t, each(), args[0]), false
	case signature{"any", 2}, signature{"all", 2}:
		return w.quantifier(t, args[0], args[1]), false
	case signature{"map", 1}: // [.[] | f]
		return w.term(&gojq.Term{Type: gojq.TermTypeArray, Array: &gojq.Array{Query: pipe(each(), args[0])}})
	case signature{"add", 1}, signature{"range", 1}, signature{"error", 1}:
		return call(f.Name, w.decoded(args[0])), false
	case signature{"range", 2}:
		return call(f.Name, w.decoded(args[0]), w.decoded(args[1])), false
	case signature{"range", 3}:
		return call(f.Name, w.decoded(args[0]), w.decoded(args[1]), w.decoded(args[2])), false
	case signature{"has", 1}:
		return call(fnHas, w.decoded(args[0])), false
	}
	return whole(ofTerm(t)), false
}

func (w *rewriter) function0(t *gojq.Term) (*gojq.Query, bool) {
	switch t.Func.Name {
	case "empty", "now", "nan", "infinite", "env", "builtins", "halt":
		return ofTerm(t), false
	case "not":
		return pipe(call(fnSettled), ofTerm(t)), false
	case "length":
		return call(fnLength), false
	case "keys":
		return call(fnKeys), false
	case "type":
		return call(fnType), false
	case "first":
		return w.path(&path{steps: []step{{index: operand{value: 0}}}}), true
	case "last":
		return w.path(&path{steps: []step{{index: operand{value: -1}}}}), true
	case "any", "all":
		return w.quantifier(t, each(), identity()), false
	}
	return whole(ofTerm(t)), false
}

// each is .[]
func each() *gojq.Query {
	return ofTerm(&gojq.Term{Type: gojq.TermTypeIdentity, SuffixList: []*gojq.Suffix{{Iter: true}}})
}

// quantifier lowers any and all, whose short forms are any(g; f) and all(g; f). There f takes the results of g.
func (w *rewriter) quantifier(t *gojq.Term, g, f *gojq.Query) *gojq.Query {
	name := t.Func.Name
	if w.defined[signature{name, 2}] > 0 {
		return whole(ofTerm(t))
	}
	g, lazy := w.query(g)
	if lazy {
		f = w.truth(f)
	}
	return call(name, g, f)
}
