package jsonrows

import (
	"context"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spilehq/spile/adapters/tabular"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/tcb"
)

// column is what a key had for values.
type column struct {
	name  string
	guess tabular.Guess
	rows  int // with the key
}

// Infer proposes a schema: a column for each key, in the order in which they are first seen, tags from 1. The type is the
// narrowest that holds every value exactly, floats to the nearest; a key that a row does not have, and null, make the
// column optional.
func Infer(ctx context.Context, in io.Reader, o *Options) (*tcb.Schema, error) {
	l := newLines(in, o)
	var columns []*column
	byKey, byName := make(map[string]*column), make(map[string]*column) // in quotes, and without
	rows := 0
	value := func(c *column, element bool) error {
		p, err := l.dec.ReadValue()
		if err != nil {
			return err
		}
		v := tcb.Cell{Text: string(p)}
		switch k := p.Kind(); k {
		case 'n':
			if element {
				c.guess.AbsentElement()
			} else {
				c.guess.Absent()
			}
			return nil
		case 't', 'f':
			v.Kind = tcb.CellBool
		case '0':
			v.Kind = tcb.CellNumber
		case '"':
			text, err := jsontext.AppendUnquote(nil, p)
			if err != nil {
				return err
			}
			v = tcb.Cell{Kind: tcb.CellText, Text: string(text)}
		default:
			l.faults.Add(fault.New(fault.Invalid, "", "%s, want a single value or an array of them", kindName(k)), l.place(nil)+", "+c.name)
			return nil
		}
		if err := c.guess.Value(v, false, element); err != nil {
			l.faults.Add(err, l.place(nil)+", "+c.name)
		}
		return nil
	}
	err := l.rows(ctx, func([]byte) error {
		rows++
		return l.object(func(key jsontext.Value) error {
			c := byKey[string(key)]
			if c == nil {
				name, err := jsontext.AppendUnquote(nil, key)
				if err != nil {
					return err
				}
				if c = byName[string(name)]; c == nil { // else it is the same key in other escapes
					c = &column{name: string(name)}
					columns, byName[c.name] = append(columns, c), c
				}
				byKey[string(key)] = c
			}
			c.rows++
			if l.dec.PeekKind() != '[' {
				return value(c, false)
			}
			if err := c.guess.List(); err != nil {
				l.faults.Add(err, l.place(nil)+", "+c.name)
				return l.dec.SkipValue()
			}
			if _, err := l.dec.ReadToken(); err != nil {
				return err
			}
			for l.dec.PeekKind() != ']' {
				if err := value(c, true); err != nil {
					return err
				}
			}
			_, err := l.dec.ReadToken()
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	s := &tcb.Schema{}
	byTag := true // as of what was written without a schema
	for _, c := range columns {
		_, ok := tabular.Tag(c.name)
		byTag = byTag && ok
	}
	for i, c := range columns {
		if c.name == "" {
			return nil, fault.New(fault.Invalid, "jsonrows", "a member without a name").In(l.opts.Name)
		}
		if c.rows < rows {
			c.guess.Absent()
		}
		name, tag := c.name, int32(i+1)
		if byTag {
			tag, _ = tabular.Tag(name)
			name = ""
		}
		s.Columns = append(s.Columns, c.guess.Field(name, tag))
	}
	return s, fault.Locate(s.Check(), l.opts.Name, "", 0)
}
