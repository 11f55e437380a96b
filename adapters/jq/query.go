package jq

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/itchyny/gojq"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/value"
)

// Options are the options of a query. Nil and the zero value mean the defaults.
type Options struct {
	// JSON says what JSON text the program sees of the document, and how results are written; nil: the defaults.
	JSON *value.JSONOptions
	// Limits bounds the nesting of values that are decoded and of results.
	Limits value.Limits
	// MaxDecode is how many bytes of the document a run may decode or write out; 0: no bound.
	MaxDecode int64
	// Variables are the values of variables, by name without $: what [ParseValue] gives, or values of its types.
	Variables map[string]any
}

// Query is a compiled program.
type Query struct {
	code      *gojq.Code
	json      value.JSONOptions
	limits    value.Limits
	maxDecode int64
	variables []any
	sizes     sizes
}

// Compile compiles a jq program. What is wrong with it is an error of class [fault.Invalid].
func Compile(program string, o *Options) (*Query, error) {
	if o == nil {
		o = &Options{}
	}
	q := &Query{limits: o.Limits, maxDecode: o.MaxDecode, sizes: defaultSizes}
	if o.JSON != nil {
		q.json = *o.JSON
	}
	q.limits.Depth = q.limits.MaxNesting()
	var names []string
	for name := range o.Variables {
		names = append(names, "$"+name)
	}
	slices.Sort(names)
	for _, name := range names {
		q.variables = append(q.variables, o.Variables[name[1:]])
	}
	ast, err := gojq.Parse(program)
	if err == nil {
		// The program as it is first, so that errors speak of it and not of what becomes of it.
		_, err = gojq.Compile(ast, gojq.WithVariables(names))
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "jq", "").Because(err)
	}
	w := rewriter{defined: make(map[signature]int), options: slices.Concat(placeFunctions, integerFunctions)}
	w.options = append(w.options, gojq.WithVariables(names))
	if lowered := ast; len(ast.Imports) == 0 {
		lowered, _ = w.query(ast)
		lowered = withIntegers(lowered)
		q.code, err = gojq.Compile(lowered, w.options...)
	} else {
		err = errors.New("modules cannot be imported")
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "jq", "").Because(err)
	}
	return q, nil
}

// placeFunctions are the functions that a lowered program calls, save for its paths.
var placeFunctions = []gojq.CompilerOption{
	gojq.WithFunction(fnDecoded, 0, 0, func(v any, _ []any) any { return decodedOf(v) }),
	gojq.WithFunction(fnSettled, 0, 0, func(v any, _ []any) any {
		if p, ok := v.(*place); ok {
			if _, err := p.shape(); err != nil {
				return err
			}
			switch p.kind {
			case value.Array, value.Map, value.String, value.Bytes, value.Ext: // never null or false
			default:
				return decodedOf(p)
			}
		}
		return v
	}),
	gojq.WithFunction(fnLength, 0, 0, func(v any, _ []any) any {
		return answer(v, (*place).length, builtins["length"])
	}),
	gojq.WithFunction(fnKeys, 0, 0, func(v any, _ []any) any {
		return answer(v, (*place).keys, builtins["keys"])
	}),
	gojq.WithFunction(fnType, 0, 0, func(v any, _ []any) any {
		return answer(v, func(p *place) (any, error) {
			name, err := p.typeName()
			if err == nil && name == "" {
				err = errNotHere
			}
			return name, err
		}, builtins["type"])
	}),
	gojq.WithFunction(fnHas, 1, 1, func(v any, args []any) any {
		return answer(v, func(p *place) (any, error) { return p.has(args[0]) }, builtins["has($key)"], args[0])
	}),
}

// builtins are functions of jq for values that turn out to need decoding.
var builtins = map[string]func() *gojq.Code{
	"length":    sync.OnceValue(func() *gojq.Code { return mustCompile("length") }),
	"keys":      sync.OnceValue(func() *gojq.Code { return mustCompile("keys") }),
	"type":      sync.OnceValue(func() *gojq.Code { return mustCompile("type") }),
	"has($key)": sync.OnceValue(func() *gojq.Code { return mustCompile("has($key)", "$key") }),
}

// mustCompile compiles a program of this package.
func mustCompile(program string, variables ...string) *gojq.Code {
	ast, err := gojq.Parse(program)
	if err != nil {
		panic(err)
	}
	code, err := gojq.Compile(ast, gojq.WithVariables(variables))
	if err != nil {
		panic(err)
	}
	return code
}

// answer asks a place, or, where it does not know, gojq about the value. It returns a value or an error, as functions of
// gojq do.
func answer(v any, ask func(*place) (any, error), code func() *gojq.Code, args ...any) any {
	if p, ok := v.(*place); ok {
		out, err := ask(p)
		if err == nil {
			return out
		}
		if err != errNotHere {
			return err
		}
	}
	if v = decodedOf(v); isError(v) {
		return v
	}
	out, _ := code().Run(v, args...).Next()
	return out
}

func isError(v any) bool {
	_, ok := v.(error)
	return ok
}

// decodedOf decodes a place and lets other values be. It returns a value or an error.
func decodedOf(v any) any {
	p, ok := v.(*place)
	if !ok {
		return v
	}
	out, err := p.decode()
	if err != nil {
		return err
	}
	return out
}

// Run runs the program on the value of n and yields the results one after another; what is nothing to the program is
// not read. What the document's text could not keep is counted in loss, unless that is nil. An error is the last thing
// that is yielded: one of the document, or one that the program ends with, of class [fault.Invalid], for which
// [errors.As] finds the error of gojq. A result must be used before the next one is asked for.
func (q *Query) Run(ctx context.Context, n msglc.Node, loss *value.Losses) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		r, err := q.start(ctx, n, loss)
		if err != nil {
			yield(Result{}, err)
			return
		}
		defer r.close()
		results := q.code.RunWithContext(r.ctx, any(&place{run: r, node: n}), q.variables...)
		for {
			v, ok := results.Next()
			if r.err != nil {
				yield(Result{}, r.err)
				return
			}
			if !ok {
				return
			}
			if err, ok := v.(error); ok {
				if err := programError(ctx, err); err != nil {
					yield(Result{}, err)
				}
				return
			}
			if !yield(Result{run: r, value: v}, nil) {
				return
			}
		}
	}
}

// programError gives an error that a program ends with its class. The end by halt is none.
func programError(ctx context.Context, err error) error {
	var halt *gojq.HaltError
	switch {
	case ctx.Err() != nil:
		return fault.New(nil, "jq", "").Because(ctx.Err())
	case errors.As(err, &halt) && halt.Value() == nil:
		return nil
	}
	return fault.New(fault.Invalid, "jq", "").Because(err)
}
