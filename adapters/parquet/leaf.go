package parquet

import (
	"context"

	"github.com/parquet-go/parquet-go"

	"github.com/spilehq/spile/adapters/internal/columnar"
	"github.com/spilehq/spile/adapters/internal/parquetfile"
	"github.com/spilehq/spile/tcb"
)

// leaf is a column on its way into the file.
type leaf struct {
	column *columnar.Column
	index  int
	node   parquet.Node
	// The definition levels. Parquet stores one a value: how many of the things that can be absent are there. A row that
	// is absent has 0; an array without elements, the level of its row; an element that is absent, one less than a value.
	row, value int
}

func newLeaf(c *columnar.Column, index int, o *Options) (leaf, error) {
	if c.Field.Logical == tcb.DateTime && o.DateTimes == TimesAuto {
		if err := c.ChooseDateTimeUnit("parquet", "DateTimes: TimesTicks"); err != nil {
			return leaf{}, err
		}
	}
	l := leaf{column: c, index: index, node: element(c)}
	if c.Type.Kind == tcb.Array {
		l.value++
		if c.Type.ElementOptional {
			l.node = parquet.Optional(l.node)
			l.value++
		}
		l.node = parquet.List(l.node)
	}
	if c.Type.Optional {
		l.node = parquet.Optional(l.node)
		l.row = 1
		l.value++
	}
	return l, nil
}

func element(c *columnar.Column) parquet.Node {
	switch c.Type.Element {
	case tcb.Enum, tcb.I32:
		return parquet.Leaf(parquet.Int32Type)
	case tcb.Bool:
		return parquet.Leaf(parquet.BooleanType)
	case tcb.F32:
		return parquet.Leaf(parquet.FloatType)
	case tcb.F64:
		return parquet.Leaf(parquet.DoubleType)
	case tcb.String:
		return parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
	case tcb.UUID:
		return parquet.UUID()
	}
	switch c.Unit {
	case columnar.Micros:
		return parquet.TimestampAdjusted(parquet.Microsecond, false)
	case columnar.Nanos:
		return parquet.TimestampAdjusted(parquet.Nanosecond, false)
	}
	return parquet.Leaf(parquet.Int64Type)
}

// write hands the rows [start, end) to the encoder.
func (l *leaf) write(ctx context.Context, w *parquet.ColumnWriter, start, end int) error {
	c := l.column
	b := batch{leaf: l, writer: w, values: make([]parquet.Value, 0, parquetfile.BatchRows)}
	for i := start; i < end; i++ {
		from, to := c.Span(i)
		switch {
		case !c.Has(i):
			b.add(parquet.Value{}, 0, 0)
		case c.Type.Kind == tcb.Scalar:
			b.add(b.get(i), 0, l.value)
		case from == to:
			b.add(parquet.Value{}, 0, l.row)
		}
		if c.Type.Kind == tcb.Array && c.Has(i) {
			for j := from; j < to; j++ {
				again := min(j-from, 1)
				if c.HasElement(j) {
					b.add(b.get(j), again, l.value)
				} else {
					b.add(parquet.Value{}, again, l.value-1)
				}
			}
		}
		if len(b.values) >= parquetfile.BatchRows || len(b.bytes) >= parquetfile.BatchBytes {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := b.flush(); err != nil {
				return err
			}
		}
	}
	return b.flush()
}

// batch holds values for the encoder.
type batch struct {
	leaf   *leaf
	writer *parquet.ColumnWriter
	values []parquet.Value
	bytes  []byte // that values point into: the encoder copies them
}

func (b *batch) add(v parquet.Value, repetition, definition int) {
	b.values = append(b.values, v.Level(repetition, definition, b.leaf.index))
}

func (b *batch) get(j int) parquet.Value {
	c := b.leaf.column
	switch c.Type.Element {
	case tcb.Enum, tcb.I32:
		return parquet.Int32Value(c.Int32s[j])
	case tcb.Bool:
		return parquet.BooleanValue(c.Bools[j])
	case tcb.I64:
		return parquet.Int64Value(c.Time(j))
	case tcb.F32:
		return parquet.FloatValue(c.Float32s[j])
	case tcb.F64:
		return parquet.DoubleValue(c.Float64s[j])
	case tcb.String:
		b.bytes = append(b.bytes, c.Strings[j]...)
		return parquet.ByteArrayValue(b.bytes[len(b.bytes)-len(c.Strings[j]):])
	}
	u := c.UUIDs[j].Bytes()
	b.bytes = append(b.bytes, u[:]...)
	return parquet.FixedLenByteArrayValue(b.bytes[len(b.bytes)-len(u):])
}

func (b *batch) flush() error {
	if len(b.values) == 0 {
		return nil
	}
	_, err := b.writer.WriteRowValues(b.values)
	b.values, b.bytes = b.values[:0], b.bytes[:0]
	return err
}
