package jq

import (
	"encoding/json"
	"math/big"
	"strings"
	"sync"

	"github.com/itchyny/gojq"
)

// rounders are the functions of jq that give an integer as it is. Those of gojq of the same names make a float64 of it,
// which has 53 bits.
var rounders = []string{"floor", "round", "ceil", "trunc", "rint", "nearbyint"}

// integerFunctions are what the definitions of withIntegers call.
var integerFunctions = func() []gojq.CompilerOption {
	options := []gojq.CompilerOption{integerFunction("fabs", magnitude)}
	for _, name := range rounders {
		options = append(options, integerFunction(name, func(v any) any { return v }))
	}
	return options
}()

// integerFunction is the function of jq with that name, which asks ours for what it gives for an integer.
func integerFunction(name string, ours func(any) any) gojq.CompilerOption {
	code := sync.OnceValue(func() *gojq.Code { return mustCompile(name) })
	return gojq.WithFunction(integerName(name), 0, 0, func(v any, _ []any) any {
		if isInteger(v) {
			return ours(v)
		}
		out, _ := code().Run(v).Next()
		return out
	})
}

// integerName has a blank in it, as those of the functions over places.
func integerName(name string) string { return "_" + name + " of integers" }

func isInteger(v any) bool {
	switch v := v.(type) {
	case int, *big.Int:
		return true
	case json.Number:
		return !strings.ContainsAny(v.String(), ".eE")
	}
	return false
}

// magnitude is an integer without its sign.
func magnitude(v any) any {
	out, _ := absolute().Run(v).Next()
	return out
}

var absolute = sync.OnceValue(func() *gojq.Code { return mustCompile("abs") })

// withIntegers defines the functions around a program. In it they are what a call means, in the bodies and arguments of
// its functions too, unless it has a definition of its own.
func withIntegers(q *gojq.Query) *gojq.Query {
	out := &gojq.Query{Term: parens(q)}
	for _, name := range append([]string{"fabs"}, rounders...) {
		out.FuncDefs = append(out.FuncDefs, &gojq.FuncDef{Name: name, Body: call(integerName(name))})
	}
	return out
}
