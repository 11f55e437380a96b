package jq

import (
	"strconv"

	"github.com/itchyny/gojq"
)

// rewriter turns a program into one that takes a place. An expression whose input is a place is lowered; one whose
// input is a decoded value stays as it is. To lower an expression means to build one that has, for a place as input,
// the results that the expression has for the decoded place. Its results are lazy when there may be places among them:
// then what takes them must be lowered too, or get them decoded.
//
// Inside the paths of path(f), del(f), |= and the like gojq tracks where values come from, which it cannot for places.
// Those are never lowered, and neither are bodies and arguments of functions of the program: their inputs are not known.
type rewriter struct {
	options []gojq.CompilerOption
	defined map[signature]int // functions of the program in the scope
	count   int
}

// signature tells functions of jq apart.
type signature struct {
	name  string
	arity int
}

// The names of the functions over places. They have a blank in them, so that no program can call them, and begin as
// those that builtins does not list.
const (
	fnDecoded = "_decoded place"
	fnSettled = "_settled place"
	fnLength  = "_length of place"
	fnKeys    = "_keys of place"
	fnType    = "_type of place"
	fnHas     = "_has place"
)

func call(name string, args ...*gojq.Query) *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: name, Args: args}}}
}

func pipe(left, right *gojq.Query) *gojq.Query {
	return &gojq.Query{Left: left, Op: gojq.OpPipe, Right: right}
}

func identity() *gojq.Query { return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeIdentity}} }

// parens makes a term of a query.
func parens(q *gojq.Query) *gojq.Term {
	if q.Term != nil && len(q.FuncDefs) == 0 {
		return q.Term
	}
	return &gojq.Term{Type: gojq.TermTypeQuery, Query: q}
}

func ofTerm(t *gojq.Term) *gojq.Query { return &gojq.Query{Term: t} }

// query lowers q.
func (w *rewriter) query(q *gojq.Query) (_ *gojq.Query, lazy bool) {
	if len(q.FuncDefs) > 0 {
		for _, def := range q.FuncDefs {
			s := signature{def.Name, len(def.Args)}
			w.defined[s]++
			defer func() { w.defined[s]-- }()
		}
		body := *q
		body.FuncDefs = nil
		out, lazy := w.query(&body)
		// The definitions go with a query of their own: out may be one that has a place elsewhere too.
		return &gojq.Query{FuncDefs: q.FuncDefs, Term: parens(out)}, lazy
	}
	if q.Term != nil {
		return w.term(q.Term)
	}
	switch q.Op {
	case gojq.OpPipe:
		if len(q.Patterns) > 0 { // left as $x | right
			right, lazy := w.query(q.Right)
			return &gojq.Query{Left: w.decoded(q.Left), Op: gojq.OpPipe, Right: right, Patterns: q.Patterns}, lazy
		}
		left, lazy := w.query(q.Left)
		if !lazy {
			return pipe(left, q.Right), false
		}
		right, lazy := w.query(q.Right)
		return pipe(left, right), lazy
	case gojq.OpComma:
		left, lazyLeft := w.query(q.Left)
		right, lazyRight := w.query(q.Right)
		return &gojq.Query{Left: left, Op: q.Op, Right: right}, lazyLeft || lazyRight
	case gojq.OpAlt:
		left, lazyLeft := w.query(q.Left)
		right, lazyRight := w.query(q.Right)
		return &gojq.Query{Left: settled(left, lazyLeft), Op: q.Op, Right: right}, lazyLeft || lazyRight
	case gojq.OpAnd, gojq.OpOr:
		left, lazyLeft := w.query(q.Left)
		right, lazyRight := w.query(q.Right)
		return &gojq.Query{Left: settled(left, lazyLeft), Op: q.Op, Right: settled(right, lazyRight)}, false
	case gojq.OpAdd, gojq.OpSub, gojq.OpMul, gojq.OpDiv, gojq.OpMod,
		gojq.OpEq, gojq.OpNe, gojq.OpGt, gojq.OpLt, gojq.OpGe, gojq.OpLe:
		return &gojq.Query{Left: w.decoded(q.Left), Op: q.Op, Right: w.decoded(q.Right)}, false
	}
	return whole(q), false // assignments
}

// whole makes an expression take its input decoded.
func whole(q *gojq.Query) *gojq.Query { return pipe(call(fnDecoded), q) }

// decoded lowers q and decodes its results.
func (w *rewriter) decoded(q *gojq.Query) *gojq.Query {
	out, lazy := w.query(q)
	if lazy {
		return pipe(out, call(fnDecoded))
	}
	return out
}

// truth lowers q for those who want to know whether its results are true.
func (w *rewriter) truth(q *gojq.Query) *gojq.Query { return settled(w.query(q)) }

// settled decodes the places that may be null or false. The others count as true, as they are.
func settled(q *gojq.Query, lazy bool) *gojq.Query {
	if lazy {
		return pipe(q, call(fnSettled))
	}
	return q
}

// optional lowers q where it is not nil.
func (w *rewriter) optional(q *gojq.Query, lower func(*gojq.Query) *gojq.Query) *gojq.Query {
	if q == nil {
		return nil
	}
	return lower(q)
}

func (w *rewriter) term(t *gojq.Term) (*gojq.Query, bool) {
	if len(t.SuffixList) > 0 || t.Type == gojq.TermTypeIndex {
		return w.suffixed(t)
	}
	switch t.Type {
	case gojq.TermTypeIdentity:
		return ofTerm(t), true
	case gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber, gojq.TermTypeBreak:
		return ofTerm(t), false
	case gojq.TermTypeQuery:
		out, lazy := w.query(t.Query)
		return ofTerm(&gojq.Term{Type: gojq.TermTypeQuery, Query: out}), lazy
	case gojq.TermTypeFunc:
		return w.function(t)
	case gojq.TermTypeString:
		return ofTerm(&gojq.Term{Type: t.Type, Str: w.text(t.Str)}), false
	case gojq.TermTypeFormat:
		if t.Str != nil {
			return ofTerm(&gojq.Term{Type: t.Type, Format: t.Format, Str: w.text(t.Str)}), false
		}
	case gojq.TermTypeObject:
		if o := w.object(t.Object); o != nil {
			return ofTerm(&gojq.Term{Type: t.Type, Object: o}), false
		}
	case gojq.TermTypeArray:
		return ofTerm(&gojq.Term{Type: t.Type, Array: &gojq.Array{Query: w.optional(t.Array.Query, w.decoded)}}), false
	case gojq.TermTypeUnary:
		if n := t.Unary.Term; n.Type == gojq.TermTypeNumber && len(n.SuffixList) == 0 {
			return ofTerm(t), false
		}
		return ofTerm(&gojq.Term{Type: t.Type, Unary: &gojq.Unary{Op: t.Unary.Op, Term: parens(w.decoded(ofTerm(t.Unary.Term)))}}), false
	case gojq.TermTypeIf:
		out, lazy := w.branch(t.If)
		return ofTerm(&gojq.Term{Type: t.Type, If: out}), lazy
	case gojq.TermTypeTry:
		body, lazy := w.query(t.Try.Body)
		return ofTerm(&gojq.Term{Type: t.Type, Try: &gojq.Try{Body: body, Catch: t.Try.Catch}}), lazy
	case gojq.TermTypeReduce: // the input of an update is the state
		r := *t.Reduce
		r.Query, r.Start = w.decoded(r.Query), w.decoded(r.Start)
		return ofTerm(&gojq.Term{Type: t.Type, Reduce: &r}), false
	case gojq.TermTypeForeach:
		f := *t.Foreach
		f.Query, f.Start = w.decoded(f.Query), w.decoded(f.Start)
		return ofTerm(&gojq.Term{Type: t.Type, Foreach: &f}), false
	case gojq.TermTypeLabel:
		body, lazy := w.query(t.Label.Body)
		return ofTerm(&gojq.Term{Type: t.Type, Label: &gojq.Label{Ident: t.Label.Ident, Body: body}}), lazy
	}
	return whole(ofTerm(t)), false
}

// suffixed lowers a term with indices, slices, [] and ? behind it. Constant ones become a path over what is in front.
func (w *rewriter) suffixed(t *gojq.Term) (*gojq.Query, bool) {
	base, rest := *t, t.SuffixList
	base.SuffixList = nil
	var p path
	if k := lastTry(t); k >= 0 {
		body := *t
		body.SuffixList = rest[:k]
		base, rest = gojq.Term{Type: gojq.TermTypeTry, Try: &gojq.Try{Body: ofTerm(&body)}}, rest[k+1:]
	} else if t.Type == gojq.TermTypeIndex {
		base = gojq.Term{Type: gojq.TermTypeIdentity}
		if !p.takeIndex(t.Index) {
			return whole(ofTerm(t)), false
		}
	}
	for _, s := range rest {
		// The input of an expression between brackets is that of the whole term, so the term cannot be split there.
		if !p.takeSuffix(s) {
			return whole(ofTerm(t)), false
		}
	}
	out, lazy := w.query(ofTerm(&base))
	switch {
	case len(p.steps) == 0:
		return out, lazy
	case !lazy:
		return ofTerm(&gojq.Term{Type: gojq.TermTypeQuery, Query: out, SuffixList: rest}), false
	}
	next := w.path(&p)
	if base.Type == gojq.TermTypeIdentity {
		return next, true
	}
	return pipe(out, next), true
}

// lastTry is the index of the last ? that guards all of the term in front of it, -1 when there is none. gojq has it
// that one behind an index, a slice or [] guards that alone, and one behind another ? all.
func lastTry(t *gojq.Term) int {
	for k := len(t.SuffixList) - 1; k >= 0; k-- {
		if t.SuffixList[k].Optional && (k == 0 && t.Type != gojq.TermTypeIndex || k > 0 && t.SuffixList[k-1].Optional) {
			return k
		}
	}
	return -1
}

// path makes the function of a path.
func (w *rewriter) path(p *path) *gojq.Query {
	p.rest = make([]rest, len(p.steps))
	name := "_path " + strconv.Itoa(w.count)
	w.count++
	w.options = append(w.options, gojq.WithIterFunction(name, len(p.args), len(p.args), p.walk))
	return call(name, p.args...)
}

func (w *rewriter) branch(f *gojq.If) (*gojq.If, bool) {
	out := &gojq.If{Cond: w.truth(f.Cond)}
	var lazy, lazyElse bool
	out.Then, lazy = w.query(f.Then)
	for _, e := range f.Elif {
		then, lazyThen := w.query(e.Then)
		out.Elif = append(out.Elif, &gojq.IfElif{Cond: w.truth(e.Cond), Then: then})
		lazy = lazy || lazyThen
	}
	lazyElse = true // without else the input passes
	if f.Else != nil {
		out.Else, lazyElse = w.query(f.Else)
	}
	return out, lazy || lazyElse
}

// text lowers the expressions in a string.
func (w *rewriter) text(s *gojq.String) *gojq.String {
	if s == nil || s.Queries == nil {
		return s
	}
	out := &gojq.String{Str: s.Str, Queries: make([]*gojq.Query, len(s.Queries))}
	for i, q := range s.Queries {
		if q.Term == nil || q.Term.Str == nil { // gojq tells the parts that are text by it
			q = ofTerm(&gojq.Term{Type: gojq.TermTypeQuery, Query: w.decoded(q)})
		}
		out.Queries[i] = q
	}
	return out
}

// object lowers the construction of an object, nil when it cannot.
func (w *rewriter) object(o *gojq.Object) *gojq.Object {
	out := &gojq.Object{KeyVals: make([]*gojq.ObjectKeyVal, len(o.KeyVals))}
	for i, kv := range o.KeyVals {
		c := *kv
		switch {
		case kv.Val != nil:
			c.Val = w.decoded(kv.Val)
		case kv.KeyString != nil && kv.KeyString.Queries == nil: // {"a"} is {"a": ."a"}
			c.Val = w.decoded(ofTerm(&gojq.Term{Type: gojq.TermTypeIndex, Index: &gojq.Index{Str: kv.KeyString}}))
		case kv.KeyString != nil:
			return nil
		case kv.Key != "" && kv.Key[0] != '$':
			c.Val = w.decoded(ofTerm(&gojq.Term{Type: gojq.TermTypeIndex, Index: &gojq.Index{Name: kv.Key}}))
		}
		c.KeyString = w.text(kv.KeyString)
		c.KeyQuery = w.optional(kv.KeyQuery, w.decoded)
		out.KeyVals[i] = &c
	}
	return out
}
