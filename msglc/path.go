package msglc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/value"
)

// Path leads from the root of a document to a node. The empty path is the root.
type Path []Step

// Step is one step of a path: a text, which is a key in a map and an index or a slice in a list, or a key of any type.
type Step struct {
	text string
	key  value.Raw // has data in a step made by KeyStep or IndexStep, and in one written {…}
}

// TextStep is a step into a map by a string key, into a list by an index ("5", "-1") or a slice ("a:b", "a:step:b").
func TextStep(text string) Step { return Step{text: text} }

// KeyStep is a step into a map by a key of any type, given as its encoding. An integer key is an index in a list.
func KeyStep(key value.Raw) Step { return Step{key: key} }

// IndexStep is a step into a list by an index, or into a map by an integer key.
func IndexStep(i int64) Step {
	return Step{key: value.Raw{Codec: value.Msgpack, Data: value.AppendInt(nil, value.Msgpack, i)}}
}

// SplitPath splits a path of the msglc format at every "/": empty steps are skipped, nothing is escaped
// (docs/format/msglc.md, "Paths").
func SplitPath(s string) Path {
	var p Path
	for text := range strings.SplitSeq(s, "/") {
		if text != "" {
			p = append(p, TextStep(text))
		}
	}
	return p
}

// ParsePath reads a path as the command line takes it: a path of [SplitPath], or, when it begins with "/", a JSON
// Pointer (RFC 6901), in which "~1" stands for "/", "~0" for "~", and an empty step for the empty key. In both, a step
// {…} with JSON text inside is a key of any type: {7}, {null}, {"7"}. In it, \udc80 to \udcff stand for the bytes of a
// string key that are not UTF-8, as in Python (PEP 383), which [Path.String] makes of them.
func ParsePath(s string) (Path, error) {
	pointer := strings.HasPrefix(s, "/")
	if pointer {
		s = s[1:]
	}
	var p Path
	for text := range strings.SplitSeq(s, "/") {
		if text == "" && !pointer {
			continue
		}
		if pointer {
			var err error
			if text, err = unescape(text); err != nil {
				return nil, err
			}
		}
		p = append(p, parseStep(text))
	}
	return p, nil
}

func unescape(text string) (string, error) {
	if !strings.Contains(text, "~") {
		return text, nil
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '~' {
			b.WriteByte(text[i])
			continue
		}
		i++
		switch {
		case i < len(text) && text[i] == '0':
			b.WriteByte('~')
		case i < len(text) && text[i] == '1':
			b.WriteByte('/')
		default:
			return "", fault.New(fault.Invalid, "msglc", "JSON pointer step %q: ~ needs 0 or 1 behind it", text)
		}
	}
	return b.String(), nil
}

// parseStep makes a step of its text. Braces without one JSON text inside are a plain string key.
func parseStep(text string) Step {
	if len(text) < 3 || text[0] != '{' || text[len(text)-1] != '}' {
		return TextStep(text)
	}
	if key, ok := parseBytes(text[1 : len(text)-1]); ok {
		return Step{text: text, key: value.Raw{Codec: value.CBOR, Data: value.AppendString(nil, value.CBOR, key)}}
	}
	// CBOR, since it has the integers beyond 64 bits too; keys are compared by type and value.
	key, err := value.AppendFromJSON(nil, value.CBOR, []byte(text[1:len(text)-1]), nil, nil)
	if err != nil {
		return TextStep(text)
	}
	return Step{text: text, key: value.Raw{Codec: value.CBOR, Data: key}}
}

// loneByte is the escape of a byte that is not UTF-8, or another escape in front of it, which it must not be part of.
var loneByte = regexp.MustCompile(`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][cC][89a-fA-F][0-9a-fA-F]|\\[^u]`)

// parseBytes reads a JSON string with escapes of bytes that are not UTF-8. It is false for one without, and for other text.
func parseBytes(text string) (string, bool) {
	if len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
		return "", false
	}
	text = text[1 : len(text)-1]
	var key []byte
	found, from := false, 0
	part := func(to int) bool {
		var s string
		if err := json.Unmarshal([]byte(`"`+text[from:to]+`"`), &s); err != nil || !utf8.ValidString(text[from:to]) {
			return false
		}
		key = append(key, s...)
		return true
	}
	for _, at := range loneByte.FindAllStringIndex(text, -1) {
		if escape := text[at[0]:at[1]]; len(escape) == len(`\udcff`) {
			if !part(at[0]) {
				return "", false
			}
			n, _ := strconv.ParseUint(escape[4:], 16, 8)
			key = append(key, byte(n))
			found, from = true, at[1]
		}
	}
	return string(key), found && part(len(text)) && !utf8.Valid(key)
}

// quoteBytes is the JSON string that parseBytes reads as text: printable, on one line.
func quoteBytes(text string) string {
	b := []byte{'"'}
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n == 1:
			b = fmt.Appendf(b, `\udc%02x`, text[0])
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case unicode.IsPrint(r):
			b = append(b, text[:n]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, high, low)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
		text = text[n:]
	}
	return string(append(b, '"'))
}

// String returns the path as text that [ParsePath] reads as the same path.
func (p Path) String() string {
	texts := make([]string, len(p))
	plain := true
	for i, s := range p {
		texts[i] = s.String()
		if texts[i] == "" || strings.Contains(texts[i], "/") {
			plain = false
		}
	}
	if len(p) > 0 && strings.HasPrefix(texts[0], "-") {
		plain = false // a command would take it for a flag
	}
	if plain {
		return strings.Join(texts, "/")
	}
	var b strings.Builder
	for _, text := range texts {
		b.WriteByte('/')
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(text, "~", "~0"), "/", "~1"))
	}
	return b.String()
}

// String returns the step as it stands in a path, before the escapes of a JSON Pointer.
func (s Step) String() string {
	if s.key.Data == nil {
		if !utf8.ValidString(s.text) {
			return "{" + quoteBytes(s.text) + "}"
		}
		if parseStep(s.text).key.Data != nil { // a string key that looks like {…}
			return "{" + keyText(value.Raw{Codec: value.Msgpack, Data: value.AppendString(nil, value.Msgpack, s.text)}) + "}"
		}
		return s.text
	}
	if s.text != "" {
		return s.text // as it was written: {"QQ"} may stand for a binary key too
	}
	if t, ok := stringKey(s.key); ok {
		return TextStep(t).String()
	}
	return "{" + keyText(s.key) + "}"
}

// stringKey returns the text of a string key.
func stringKey(key value.Raw) (string, bool) {
	h, content := keyContent(key.Codec, key.Data)
	return string(content), h.Kind == value.String
}

// Step returns the step from a node to this child: its index in a list, its key in a map.
func (c Child) Step() Step {
	if c.Key.Data == nil {
		return TextStep(strconv.FormatInt(c.Index, 10))
	}
	if text, ok := stringKey(c.Key); ok {
		return TextStep(text)
	}
	return KeyStep(c.Key)
}

// Find follows a path from the root. A key or index that is not there is [fault.NotFound]; a step into a scalar, and a
// text that is no index into a list, is [fault.Invalid]. The error names the path up to the step that failed.
func (r *Reader) Find(ctx context.Context, p Path) (Node, error) {
	return r.Root().Find(ctx, p)
}

// Find follows a path from the node, see [Reader.Find].
func (n Node) Find(ctx context.Context, p Path) (Node, error) {
	path := n.path
	for i, s := range p {
		next, err := n.Step(ctx, s)
		if err != nil {
			return n, onPath(err, p[:i+1])
		}
		n = next
	}
	return n.arrived(ctx, path, p)
}

// arrived is the node at the end of a path from another one, whose own path is nil where it is not known.
func (n Node) arrived(ctx context.Context, from *Path, p Path) (Node, error) {
	if n.path = from; from != nil && len(p) > 0 {
		full := slices.Concat(*from, p)
		n.path = &full
	}
	return n.resolve(ctx)
}

// onPath names the path in an error that has no place yet.
func onPath(err error, p Path) error {
	e, ok := err.(*fault.Error)
	if !ok || e.Where != "" {
		return err
	}
	c := *e
	return c.On(p.String())
}

// Step follows one step.
func (n Node) Step(ctx context.Context, s Step) (Node, error) {
	n, kind, err := n.enter(ctx)
	if err != nil {
		return n, err
	}
	switch {
	case kind == value.Map && s.key.Data == nil:
		next, err := n.Lookup(ctx, value.Raw{Codec: value.Msgpack, Data: value.AppendString(nil, value.Msgpack, s.text)})
		if errors.Is(err, fault.NotFound) {
			err = n.otherKey(ctx, s.text, err)
		}
		return next, err
	case kind == value.Map:
		if t, ok := stringKey(s.key); ok && s.text != "" && parseStep(t).key.Data == nil {
			// A string key needs no braces here, so a key is meant whose JSON form is a string: binary, a time.
			if next, err := n.lookupText(ctx, s, errNoKey); err != errNoKey {
				return next, err
			}
		}
		next, err := n.Lookup(ctx, s.key)
		if errors.Is(err, fault.NotFound) && s.text != "" {
			return n.lookupText(ctx, s, err)
		}
		return next, err
	case kind == value.Array && s.key.Data == nil:
		return n.stepText(ctx, s.text)
	case kind == value.Array:
		h, err := value.ReadHead(s.key.Codec, s.key.Data)
		if err == nil && h.Kind == value.Uint && h.Arg <= math.MaxInt64 {
			return n.Index(ctx, int64(h.Arg))
		}
		if err == nil && h.Kind == value.Nint && h.Arg <= math.MaxInt64 {
			return n.Index(ctx, -1-int64(h.Arg))
		}
		return n, n.invalid("key %s into a list", keyText(s.key))
	}
	return n, n.invalid("step %s into a value of kind %s", strconv.Quote(s.String()), kind)
}

// otherKey adds to the error of a text that is no key of the map that what it says in JSON is one.
func (n Node) otherKey(ctx context.Context, text string, notFound error) error {
	key := parseStep("{" + text + "}").key
	e, ok := notFound.(*fault.Error)
	if _, isText := stringKey(key); !ok || key.Data == nil || isText {
		return notFound
	}
	if _, err := n.Lookup(ctx, key); errors.Is(err, errLater) {
		return err
	} else if err != nil {
		return notFound
	}
	c := *e
	c.Msg += "; the key {" + text + "} is there"
	return &c
}

var errNoKey = errors.New("no key")

// lookupText finds a key that JSON has no type for, such as a binary one, by its JSON text in a step {…}.
func (n Node) lookupText(ctx context.Context, s Step, notFound error) (Node, error) {
	want := []byte(s.text[1 : len(s.text)-1])
	for child, err := range n.Children(ctx) {
		if err != nil {
			return n, err
		}
		if child.Key.Kind() != value.String && bytes.Equal([]byte(keyText(child.Key)), want) {
			return child.Node, nil
		}
	}
	return n, notFound
}

// stepText follows a text into a list: an index, or a slice with the step in the middle.
func (n Node) stepText(ctx context.Context, text string) (Node, error) {
	bad := func() (Node, error) { return n, n.invalid("%q is no index into a list, and no slice", text) }
	parts := strings.Split(text, ":")
	switch len(parts) {
	case 1:
		i, ok := parseIndex(text)
		if !ok {
			return bad()
		}
		return n.index(ctx, i, text)
	case 2:
		parts = []string{parts[0], "", parts[1]}
	case 3:
	default:
		return bad()
	}
	bounds := [3]int64{0, 1, math.MaxInt64}
	for i, part := range parts {
		if part == "" {
			continue
		}
		var ok bool
		if bounds[i], ok = parseIndex(part); !ok {
			return bad()
		}
	}
	return n.Slice(ctx, bounds[0], bounds[2], bounds[1])
}

// parseIndex reads an optional sign and decimal digits; a number beyond 64 bits is the nearest within.
func parseIndex(text string) (int64, bool) {
	digits := strings.TrimLeft(text, "+-")
	if len(text)-len(digits) > 1 || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	i, err := strconv.ParseInt(text, 10, 64) // on overflow it returns the nearest
	if err != nil && i == 0 {
		return 0, false
	}
	return i, true
}

// keyText is the JSON text of a key, for messages and for a step {…}.
func keyText(key value.Raw) string {
	text, err := value.AppendJSON(nil, key.Codec, key.Data, value.Limits{}, keyJSON, nil)
	if err != nil {
		return "?"
	}
	return string(text)
}

// keyJSON is how keys are printed inside a path and in messages: nothing is refused.
var keyJSON = &value.JSONOptions{
	NonFinite: value.NonFiniteString, InvalidUTF8: value.UTF8Replace, Keys: value.KeysPairs, Dup: value.DupAll,
}
