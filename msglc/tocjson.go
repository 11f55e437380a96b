package msglc

import (
	"context"
	"io"

	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// WriteTOC writes the table of contents from the node down as JSON text, without a line break behind it: the nodes are
// objects with "p" and "t", child archives are offsets. What JSON could not keep of the keys is counted in loss, unless
// that is nil. A value that has no node of its own gives {"p":[start,end]}.
func (n Node) WriteTOC(ctx context.Context, w io.Writer, o *value.JSONOptions, loss *value.Losses) error {
	n, err := n.resolve(ctx)
	if err != nil {
		return err
	}
	// A node is a map with a container in it: two levels of JSON for one of the document.
	jw := value.NewJSONWriter(w, value.Limits{Depth: 2*n.r.s.depth + 2}, o, loss)
	if n.slice != nil {
		return n.invalid("a slice has no node in the table of contents")
	}
	if n.r.toc == nil || n.e.at < 0 {
		c := n.r.h.codec
		node := value.AppendString(value.AppendMapHeader(nil, c, 1), c, "p")
		node = value.AppendArrayHeader(node, c, 2)
		node = value.AppendUint(value.AppendUint(node, c, uint64(n.e.start)), c, uint64(n.e.end))
		if err := jw.WriteValue(value.NewScanner(c, node, n.r.s.limits)); err != nil {
			return n.r.locate(err)
		}
		return jw.Flush()
	}
	c := n.r.cursor(ctx, n.e.at)
	if err := c.skip(1); err != nil {
		return n.r.locate(err)
	}
	t := n.r.toc
	jw.At("", t.base+n.e.at)
	in := io.NewSectionReader(source.AsReaderAt(ctx, t.obj), t.base+n.e.at, c.at()-n.e.at)
	if err := jw.WriteSection(n.r.h.codec, in, 0, in.Size()); err != nil {
		jw.Flush()
		return n.r.locate(err)
	}
	return jw.Flush()
}
