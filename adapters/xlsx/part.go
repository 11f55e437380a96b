package xlsx

import (
	"archive/zip"
	"context"
	"encoding/xml"
	"errors"
	"io"

	"github.com/spilehq/spile/fault"
)

const (
	// maxToken is the most bytes of XML from one token to the next: cells hold 32,767 characters, and what unpacks to more
	// without a token in it is made to take memory.
	maxToken = 16 << 20
	// maxDepth is the most elements inside one another; sheets have about ten.
	maxDepth = 200
	// maxSmall is the most bytes of a part that is no sheet and not that of the shared strings. Large ones have a megabyte.
	maxSmall = 64 << 20
	// maxItems is the most relations, sheets or number formats of a workbook, maxStyles the most styles of cells. Excel has
	// 65,490 of these.
	maxItems  = 1 << 14
	maxStyles = 1 << 20
)

// part is a file of the package, read token by token.
type part struct {
	*xml.Decoder
	ctx   context.Context
	name  string
	src   io.ReadCloser
	left  *int64 // what may be unpacked yet, of all parts
	max   int64  // of this part
	done  int64  // bytes that were unpacked
	since int64  // the last token
	depth int
	names []xml.Name // of the elements that are open
}

// open opens a part of the package.
func (b *workbook) open(f *zip.File, max int64) (*part, error) {
	src, err := f.Open()
	if err != nil {
		return nil, fault.New(fault.Corrupt, "xlsx", "").On(f.Name).Because(err)
	}
	p := &part{ctx: b.ctx, name: f.Name, src: src, left: &b.left, max: max}
	p.Decoder = xml.NewDecoder(p)
	return p, nil
}

// Read gives the XML decoder the bytes of the part.
func (p *part) Read(buf []byte) (int, error) {
	if p.done-p.since > maxToken {
		return 0, fault.New(fault.Limit, "xlsx", "more than %d bytes without a tag", maxToken)
	}
	if p.done > p.max {
		return 0, fault.New(fault.Limit, "xlsx", "the part unpacks to more than %d bytes", p.max)
	}
	if *p.left <= 0 {
		return 0, fault.New(fault.Limit, "xlsx", "the workbook unpacks to more than the limit")
	}
	if err := p.ctx.Err(); err != nil {
		return 0, fault.New(nil, "xlsx", "").Because(err)
	}
	n, err := p.src.Read(buf)
	p.done += int64(n)
	*p.left -= int64(n)
	return n, err
}

func (p *part) close() { p.src.Close() }

// token returns the next token; io.EOF is the end of the part. Names have prefixes, not name spaces: to look those up
// takes a fifth of the time of a sheet, and no name here means two things.
func (p *part) token() (xml.Token, error) {
	p.since = p.done
	t, err := p.RawToken()
	if err != nil {
		if err == io.EOF && p.depth > 0 {
			return nil, p.ended(err)
		}
		return nil, p.fault(err)
	}
	switch t := t.(type) {
	case xml.StartElement:
		if p.depth++; p.depth > maxDepth {
			return nil, fault.New(fault.Limit, "xlsx", "more than %d elements inside one another", maxDepth).On(p.name)
		}
		p.names = append(p.names[:p.depth-1], t.Name)
	case xml.EndElement:
		if p.depth == 0 || p.names[p.depth-1] != t.Name {
			return nil, fault.New(fault.Corrupt, "xlsx", "the end tag of %q, which is not open", t.Name.Local).On(p.name)
		}
		p.depth--
	}
	return t, nil
}

// fault is the error of a part.
func (p *part) fault(err error) error {
	if err == io.EOF {
		return err
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return fault.Locate(f, "", p.name, 0)
	}
	return fault.New(fault.Corrupt, "xlsx", "").On(p.name).Because(err)
}

// skip passes the rest of the element whose start was read.
func (p *part) skip() error {
	for depth := p.depth - 1; p.depth > depth; {
		if _, err := p.token(); err != nil {
			return p.ended(err)
		}
	}
	return nil
}

// ended makes a fault of an end of the part where none may be.
func (p *part) ended(err error) error {
	if err == io.EOF {
		return fault.New(fault.Corrupt, "xlsx", "the part is not complete").On(p.name)
	}
	return err
}

// text appends the text of the element whose start was read, that of elements inside it excepted.
func (p *part) text(dst []byte) ([]byte, error) {
	for depth := p.depth - 1; ; {
		t, err := p.token()
		if err != nil {
			return dst, p.ended(err)
		}
		switch t := t.(type) {
		case xml.CharData:
			if p.depth == depth+1 {
				dst = append(dst, t...)
			}
		case xml.EndElement:
			if p.depth == depth {
				return dst, nil
			}
		}
	}
}

// richText appends the text of a string item (the si of a shared string, the is of a cell) whose start was read: that of
// its t and of those of its runs r, not that of phonetic runs.
func (p *part) richText(dst []byte) ([]byte, error) {
	for depth := p.depth - 1; ; {
		t, err := p.token()
		if err != nil {
			return dst, p.ended(err)
		}
		switch t := t.(type) {
		case xml.StartElement:
			switch t.Name.Local {
			case "t":
				if dst, err = p.text(dst); err != nil {
					return dst, err
				}
			case "r":
			default:
				if err := p.skip(); err != nil {
					return dst, err
				}
			}
		case xml.EndElement:
			if p.depth == depth {
				return dst, nil
			}
		}
	}
}

// attr returns an attribute without a prefix, "" where it is missing.
func attr(e *xml.StartElement, name string) string {
	for i := range e.Attr {
		if a := &e.Attr[i]; a.Name.Local == name && a.Name.Space == "" {
			return a.Value
		}
	}
	return ""
}

// relation returns the id of a relation, r:id.
func relation(e *xml.StartElement) string {
	for i := range e.Attr {
		if a := &e.Attr[i]; a.Name.Local == "id" && a.Name.Space != "" && a.Name.Space != "xmlns" {
			return a.Value
		}
	}
	return ""
}

func isTrue(s string) bool { return s == "1" || s == "true" || s == "on" }
