package jq

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// decode makes the Go value that gojq computes with. It is the one that the JSON text of the place would give, and for
// all that needs thought it is made from that text; what is plain comes straight from the encoding.
//
// A number whose text is not that which gojq makes of a float64, such as 1.0 or a float of 32 bits, is a [json.Number].
func (p *place) decode() (any, error) {
	if p.decoded {
		return p.value, nil
	}
	n, err := p.list(p.run.ctx)
	if err != nil {
		return nil, p.run.fail(err)
	}
	if err := p.run.allow(n); err != nil {
		return nil, err
	}
	if p.sliced {
		var b *budget
		if b, err = p.run.budget(p.node); err == nil {
			p.value, err = p.run.readList(p.run.together(window(p.node.Children(p.run.ctx), p.from, p.to)), b, 1)
		}
	} else {
		p.value, err = p.run.read(p.node, nil, 0)
	}
	if err != nil {
		return nil, p.fail(err)
	}
	p.decoded = true
	return p.value, nil
}

// budget bounds the bytes that one decode reads, as [msglc.Node.Value] is bounded: in an honest document no byte belongs
// to two values, so that children that overlap are found before they multiply.
type budget struct {
	in   *msglc.Reader // the archive that is being read
	left *int64
}

// budget is that for a node: the bytes of its archive.
func (r *run) budget(n msglc.Node) (*budget, error) {
	a, err := n.Archive(r.ctx)
	if err != nil {
		return nil, err
	}
	in := a.Info()
	left := msglc.PrefixSize + in.PayloadSize + in.TOCSize
	return &budget{a, &left}, nil
}

func (b *budget) take(size, at int64) error {
	if *b.left -= size; *b.left < 0 {
		return &trouble{class: fault.Corrupt, text: "children overlap: more bytes to decode than the archive has", at: at}
	}
	return nil
}

// enter takes a node below that of the budget: what is read to enter its archive, when it is one, and its bytes.
func (b *budget) enter(r *run, n msglc.Node) (msglc.Node, *budget, error) {
	if rng, whole := n.Range(); whole {
		return n, b, b.take(rng.Len(), rng.Start)
	}
	n, err := n.Find(r.ctx, nil) // the root of an archive
	if err != nil {
		return n, b, err
	}
	a, err := n.Archive(r.ctx)
	if err != nil {
		return n, b, err
	}
	if a != b.in {
		b = &budget{a, b.left}
		if err := b.take(msglc.PrefixSize+a.Info().TOCSize, r.offset(n)); err != nil {
			return n, b, err
		}
	}
	if _, whole := n.Range(); !whole && n.Form() != msglc.Blocks { // what is below it is taken one by one
		return n, b, nil
	}
	size, err := n.Size(r.ctx)
	if err != nil {
		return n, b, err
	}
	return n, b, b.take(size, r.offset(n))
}

// weigh takes all that is below a node with archives among its children. depth is how many lists and maps enclose the node.
func (b *budget) weigh(r *run, n msglc.Node, depth int) error {
	if depth >= r.limits.Depth {
		return r.tooDeep(n)
	}
	for child, err := range n.Children(r.ctx) {
		if err != nil {
			return err
		}
		node, in, err := b.enter(r, child.Node)
		if _, whole := node.Range(); err == nil && !whole && node.Form() != msglc.Blocks {
			err = in.weigh(r, node, depth+1)
		}
		if err != nil {
			return below(child, err)
		}
	}
	return nil
}

// tooDeep is the error of a node that more lists and maps enclose than may be. They count through archives in one another, as
// they do in [msglc.Node.Value]: each has the depth of a document by itself.
func (r *run) tooDeep(n msglc.Node) error {
	return &trouble{class: fault.Limit, text: fmt.Sprintf("nested deeper than %d", r.limits.Depth), at: r.offset(n)}
}

// read decodes a node that depth lists and maps enclose. The budget is nil for the first one, else it is that which the node has
// entered.
func (r *run) read(n msglc.Node, b *budget, depth int) (any, error) {
	rng, whole := n.Range()
	if whole && rng.Len() <= r.sizes.raw {
		raw, err := n.Raw(r.ctx)
		if err != nil {
			return nil, err
		}
		var v any
		return v, r.once(func() source.Range { return rng }, func() (err error) {
			v, err = r.fromRaw(raw, rng.Start, r.limits.Within(depth))
			return err
		})
	}
	if !whole {
		kind, err := n.Kind(r.ctx)
		if err != nil {
			return nil, err
		}
		if (kind == value.Array || kind == value.Map) && depth >= r.limits.Depth {
			return nil, r.tooDeep(n)
		}
		if kind == value.Array { // blocks, or a list with archives among its items
			if b == nil {
				if b, err = r.budget(n); err != nil {
					return nil, err
				}
			}
			return r.readList(window(n.Children(r.ctx), 0, math.MaxInt64), b, depth+1)
		}
		if b != nil {
			if err := b.weigh(r, n, depth); err != nil {
				return nil, err
			}
		}
	}
	// A map with archives among its values, or what is too long to be read at once.
	var text bytes.Buffer
	if err := r.write(n, &text, &r.plain); err != nil {
		return nil, err
	}
	v, err := parse(&text)
	if err == nil && depth > 0 && !fits(v, r.limits.Depth-depth) {
		err = r.tooDeep(n)
	}
	return v, err
}

// fits reports whether a value has so many lists and maps in one another at most.
func fits(v any, depth int) bool {
	switch v := v.(type) {
	case []any:
		return depth > 0 && !slices.ContainsFunc(v, func(item any) bool { return !fits(item, depth-1) })
	case map[string]any:
		for _, item := range v {
			if !fits(item, depth-1) {
				return false
			}
		}
		return depth > 0
	}
	return true
}

// readList decodes items that depth lists and maps enclose.
func (r *run) readList(children iter.Seq2[msglc.Child, error], b *budget, depth int) (any, error) {
	list := []any{}
	for child, err := range children {
		if err != nil {
			return nil, err
		}
		n, in, err := b.enter(r, child.Node)
		if err != nil {
			return nil, below(child, err)
		}
		v, err := r.read(n, in, depth)
		if err != nil {
			return nil, below(child, err)
		}
		list = append(list, v)
	}
	return list, nil
}

// below adds to the path of trouble the child that it is in, or is.
func below(c msglc.Child, err error) error {
	if o, ok := err.(*trouble); ok {
		o.path = append(o.path, c.Step())
	}
	return err
}

// errText says that a value is for the JSON writer.
var errText = errors.New("needs its text")

// fromRaw decodes one value; base is where it lies in the object.
func (r *run) fromRaw(raw value.Raw, base int64, limits value.Limits) (any, error) {
	d := decoder{run: r, raw: raw, base: base}
	var before value.Losses
	if r.loss != nil {
		before = *r.loss
	}
	r.scan.Reset(raw.Codec, raw.Data, limits)
	err := r.scan.Next()
	if err == nil {
		var v any
		if v, err = d.value(&r.scan); err == nil {
			return v, nil
		}
	}
	if err == errText {
		if r.loss != nil { // the text counts anew
			*r.loss = before
		}
		return r.fromText(raw.Codec, raw.Data, base, limits)
	}
	return nil, fault.Shift(err, base)
}

// fromText decodes one value by way of its text.
func (r *run) fromText(c value.Codec, data []byte, base int64, limits value.Limits) (any, error) {
	r.buf.Reset()
	r.text.At("", base)
	err := r.text.WriteValue(value.NewScanner(c, data, limits))
	if err == nil {
		err = r.text.Flush()
	}
	if err != nil {
		return nil, err
	}
	return parse(&r.buf)
}

type decoder struct {
	run  *run
	raw  value.Raw
	base int64
}

// value decodes the value whose first token s has read.
func (d *decoder) value(s *value.Scanner) (any, error) {
	switch s.Kind {
	case value.Null:
		return nil, nil
	case value.Bool:
		return s.Bits != 0, nil
	case value.Uint:
		if s.Bits <= math.MaxInt {
			return int(s.Bits), nil
		}
		return new(big.Int).SetUint64(s.Bits), nil
	case value.Nint: // -1 - Bits
		if s.Bits <= math.MaxInt {
			return -1 - int(s.Bits), nil
		}
		n := new(big.Int).SetUint64(s.Bits)
		return n.Not(n), nil
	case value.Float64:
		if v, ok := float(math.Float64frombits(s.Bits)); ok {
			return v, nil
		}
	case value.Float32:
		if v, ok := float32Value(math.Float32frombits(uint32(s.Bits))); ok {
			return v, nil
		}
	case value.String:
		if utf8.Valid(s.Data) {
			return string(s.Data), nil
		}
	case value.Array:
		return d.list(s)
	case value.Map:
		return d.object(s)
	case value.Tag: // with what it encloses, since it may change how bytes are written
		start := s.Start()
		for s.Kind == value.Tag {
			if err := s.Next(); err != nil {
				return nil, truncated(err)
			}
		}
		if s.Kind == value.Array || s.Kind == value.Map {
			for depth := s.Depth(); s.Depth() >= depth; {
				if err := s.Next(); err != nil {
					return nil, truncated(err)
				}
			}
		}
		return d.text(start, s.Offset())
	}
	return d.text(s.Start(), s.Offset())
}

func (d *decoder) text(from, to int64) (any, error) {
	return d.run.fromText(d.raw.Codec, d.raw.Data[from:to], d.base+from, d.run.limits)
}

func truncated(err error) error {
	if err == io.EOF {
		return fault.New(fault.Corrupt, "jq", "value ends within it").At(0)
	}
	return err
}

func (d *decoder) list(s *value.Scanner) (any, error) {
	list := make([]any, 0, max(s.Len, 0)) // the scanner has compared the length with the bytes that are left
	for {
		if err := s.Next(); err != nil {
			return nil, truncated(err)
		}
		if s.Kind == value.End {
			return list, nil
		}
		v, err := d.value(s)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
}

func (d *decoder) object(s *value.Scanner) (any, error) {
	object := make(map[string]any, max(min(s.Len, 64), 0))
	for n := 0; ; n++ {
		if err := s.Next(); err != nil {
			return nil, truncated(err)
		}
		if s.Kind == value.End {
			if len(object) != n { // a key occurs twice
				return nil, errText
			}
			return object, nil
		}
		if s.Kind != value.String || !utf8.Valid(s.Data) {
			return nil, errText
		}
		name := string(s.Data)
		if err := s.Next(); err != nil {
			return nil, truncated(err)
		}
		v, err := d.value(s)
		if err != nil {
			return nil, err
		}
		object[name] = v
	}
}

// float gives a float for gojq. It stays a float64 where gojq writes the text that the document has for it, with a
// fraction or an exponent. It is false for NaN and the infinities.
func float(f float64) (any, bool) {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return nil, false
	case f == math.Trunc(f) && math.Abs(f) < 1e21:
		return json.Number(strconv.FormatFloat(f, 'f', -1, 64) + ".0"), true
	}
	return f, true
}

// float32Value is float for 32 bits: the number that the shortest text names which reads back to those bits.
func float32Value(f float32) (any, bool) {
	if abs := math.Abs(float64(f)); abs != 0 && (abs < 1e-5 || abs >= 1e20) || f != f {
		return nil, false // near where the text gets an exponent: that is left to the JSON writer
	}
	text := strconv.FormatFloat(float64(f), 'f', -1, 32)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return json.Number(text), true
}

// parse reads one JSON text. It is one that the JSON writer has made, or one that the user has given.
func parse(text io.Reader) (any, error) {
	d := json.NewDecoder(text)
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fault.New(fault.Invalid, "jq", "JSON text").Because(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fault.New(fault.Invalid, "jq", "more than one JSON text")
	}
	return exact(v), nil
}

// ParseValue reads a JSON text as a value for [Options.Variables]. Integers keep every digit.
func ParseValue(text string) (any, error) { return parse(strings.NewReader(text)) }

// exact makes numbers of the texts that have no fraction, in place.
func exact(v any) any {
	switch v := v.(type) {
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return v
		}
		if i, err := strconv.Atoi(v.String()); err == nil {
			return i
		}
		n, _ := new(big.Int).SetString(v.String(), 10)
		return n
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = exact(v[k])
		}
	}
	return v
}

// plainName returns the text of a key that is a string of one piece and UTF-8, as nearly all are.
func plainName(key value.Raw) (string, bool) {
	h, err := value.ReadHead(key.Codec, key.Data)
	if err != nil || h.Kind != value.String || h.Indefinite || uint64(len(key.Data)-h.Size) != h.Arg {
		return "", false
	}
	text := key.Data[h.Size:]
	return string(text), utf8.Valid(text)
}

// name returns the name that the key of a child has in the JSON text.
func (r *run) name(child msglc.Child) (string, error) {
	if name, ok := plainName(child.Key); ok {
		return name, nil
	}
	at := keyRange(child)
	name := ""
	return name, r.once(func() source.Range { return at }, func() (err error) {
		name, err = nameOf(child.Key, at.Start, r.limits, &r.plain, r.loss)
		return err
	})
}

// keyRange is where the key of a child lies: before its value. The key of an archive lies in the table of contents; it
// has no place among the values, and an empty range.
func keyRange(child msglc.Child) source.Range {
	at, ok := child.Node.Range()
	if start := at.Start - int64(len(child.Key.Data)); ok && start >= 0 {
		return source.Range{Start: start, End: at.Start}
	}
	return source.Range{Start: fault.NoOffset, End: fault.NoOffset}
}

// lenientName is name for keys that are only compared: one that has no name is not the one that is looked for.
func (r *run) lenientName(key value.Raw) (string, bool) {
	if name, ok := plainName(key); ok {
		return name, true
	}
	o := r.plain
	o.Lossless = false
	name, err := nameOf(key, 0, r.limits, &o, nil)
	return name, err == nil
}

// nameOf lets the JSON writer make the name of a key that lies at an offset: of a map with this one key.
func nameOf(key value.Raw, at int64, lim value.Limits, o *value.JSONOptions, loss *value.Losses) (string, error) {
	head := value.AppendMapHeader(nil, key.Codec, 1)
	pair := value.AppendNull(append(slices.Clip(head), key.Data...), key.Codec)
	var text bytes.Buffer
	w := value.NewJSONWriter(&text, lim, o, loss)
	w.At("", max(at, 0)-int64(len(head)))
	err := w.WriteValue(value.NewScanner(key.Codec, pair, lim))
	if err == nil {
		err = w.Flush()
	}
	if f, ok := errors.AsType[*fault.Error](err); ok && at == fault.NoOffset {
		return "", f.At(fault.NoOffset)
	}
	if err != nil {
		return "", err
	}
	var object map[string]any
	if err := json.Unmarshal(text.Bytes(), &object); err != nil { // a list of pairs
		return "", fault.New(fault.Invalid, "jq", "key %s is no string", &text).At(at)
	}
	for name := range object {
		return name, nil
	}
	return "", nil
}
