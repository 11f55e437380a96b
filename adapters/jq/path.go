package jq

import (
	"encoding/json"
	"strconv"
	"sync"

	"github.com/itchyny/gojq"
)

// stepKind is what a step of a path does.
type stepKind uint8

const (
	stepIndex stepKind = iota // .a, .["a"], .[2], .[$x]
	stepSlice                 // .[2:4]
	stepEach                  // .[]
)

// step is a step of a path. An optional one, with ? behind it, yields nothing where it fails.
type step struct {
	kind     stepKind
	index    operand
	from, to operand // of a slice
	optional bool
}

// operand is a constant of a path or, when arg is not 0, argument arg-1 of the call: the value of a variable. A bound of
// a slice that is not there is the constant nil.
type operand struct {
	value any
	arg   int
}

func (o operand) of(args []any) any {
	if o.arg > 0 {
		return args[o.arg-1]
	}
	return o.value
}

// path is a path of a program. For values that are decoded it is jq code again, made when it is needed: rest[i] does
// what is left from step i on.
type path struct {
	steps []step
	args  []*gojq.Query // the variables it needs
	rest  []rest
}

type rest struct {
	once sync.Once
	code *gojq.Code
	err  error
}

// maxArgs is the number of arguments that gojq passes to a function.
const maxArgs = 30

// takeIndex reads an index suffix. It is false when the suffix is not constant.
func (p *path) takeIndex(x *gojq.Index) bool {
	switch {
	case x.Name != "":
		p.steps = append(p.steps, step{index: operand{value: x.Name}})
		return true
	case x.Str != nil:
		if x.Str.Queries != nil {
			return false
		}
		p.steps = append(p.steps, step{index: operand{value: x.Str.Str}})
		return true
	case !x.IsSlice:
		index, ok := p.takeOperand(x.Start)
		if !ok {
			return false
		}
		p.steps = append(p.steps, step{index: index})
		return true
	}
	s := step{kind: stepSlice}
	var ok bool
	if x.Start != nil {
		if s.from, ok = p.takeOperand(x.Start); !ok {
			return false
		}
	}
	if x.End != nil {
		if s.to, ok = p.takeOperand(x.End); !ok {
			return false
		}
	}
	p.steps = append(p.steps, s)
	return true
}

// takeOperand reads a string, a number or a variable. What else stands between brackets may depend on the input or give
// several values, in an order that is gojq's business.
func (p *path) takeOperand(q *gojq.Query) (operand, bool) {
	if q.Term == nil || len(q.FuncDefs) > 0 || len(q.Term.SuffixList) > 0 {
		return operand{}, false
	}
	switch t := q.Term; t.Type {
	case gojq.TermTypeString:
		if t.Str.Queries == nil {
			return operand{value: t.Str.Str}, true
		}
	case gojq.TermTypeNumber:
		return constant(t.Number)
	case gojq.TermTypeUnary:
		if n := t.Unary.Term; t.Unary.Op == gojq.OpSub && n.Type == gojq.TermTypeNumber && len(n.SuffixList) == 0 {
			return constant("-" + n.Number)
		}
	case gojq.TermTypeFunc:
		if isVariable(t.Func) && len(p.args) < maxArgs {
			p.args = append(p.args, q)
			return operand{arg: len(p.args)}, true
		}
	}
	return operand{}, false
}

// constant takes integers alone. Fractions as indices are so rare that gojq's rules for them are left to gojq.
func constant(number string) (operand, bool) {
	i, err := strconv.Atoi(number)
	return operand{value: i}, err == nil
}

func isVariable(f *gojq.Func) bool { return f.Name[0] == '$' && len(f.Args) == 0 }

// takeSuffix reads a suffix of a term; false when it is not constant.
func (p *path) takeSuffix(s *gojq.Suffix) bool {
	switch {
	case s.Index != nil:
		return p.takeIndex(s.Index)
	case s.Iter:
		p.steps = append(p.steps, step{kind: stepEach})
		return true
	case s.Optional && len(p.steps) > 0:
		p.steps[len(p.steps)-1].optional = true
		return true
	}
	return false
}

// code returns the jq code of the steps from i on. Its variables are the arguments of the path.
func (p *path) code(i int) (*gojq.Code, error) {
	r := &p.rest[i]
	r.once.Do(func() {
		t := &gojq.Term{Type: gojq.TermTypeIdentity}
		for _, s := range p.steps[i:] {
			t.SuffixList = append(t.SuffixList, s.suffix())
			if s.optional {
				t.SuffixList = append(t.SuffixList, &gojq.Suffix{Optional: true})
			}
		}
		names := make([]string, len(p.args))
		for i := range names {
			names[i] = argName(i)
		}
		r.code, r.err = gojq.Compile(&gojq.Query{Term: t}, gojq.WithVariables(names))
	})
	return r.code, r.err
}

func argName(i int) string { return "$v" + strconv.Itoa(i) }

func (s step) suffix() *gojq.Suffix {
	switch s.kind {
	case stepEach:
		return &gojq.Suffix{Iter: true}
	case stepSlice:
		x := &gojq.Index{IsSlice: true}
		if s.from != (operand{}) {
			x.Start = s.from.query()
		}
		if s.to != (operand{}) {
			x.End = s.to.query()
		}
		return &gojq.Suffix{Index: x}
	}
	return &gojq.Suffix{Index: &gojq.Index{Start: s.index.query()}}
}

func (o operand) query() *gojq.Query {
	switch v := o.value.(type) {
	case string:
		return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeString, Str: &gojq.String{Str: v}}}
	case int:
		n := &gojq.Term{Type: gojq.TermTypeNumber, Number: strconv.Itoa(v)}
		if v < 0 {
			n.Number = n.Number[1:]
			n = &gojq.Term{Type: gojq.TermTypeUnary, Unary: &gojq.Unary{Op: gojq.OpSub, Term: n}}
		}
		return &gojq.Query{Term: n}
	}
	return call(argName(o.arg - 1))
}

// number is the position that an index stands for, with ok false when it is no number. A fraction is not taken, see
// [constant].
func number(v any) (i int64, ok bool) {
	switch v := v.(type) {
	case int:
		return int64(v), true
	case json.Number:
		i, err := strconv.Atoi(v.String())
		return int64(i), err == nil
	}
	return 0, false
}
