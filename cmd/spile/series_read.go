package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spilehq/spile/adapters/seriesjson"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/series"
	"github.com/spilehq/spile/value"
)

// seriesReport is what info prints of an artifact. Of a part without its manifest, region, generation and bucket are not
// known.
type seriesReport struct {
	File       string       `json:"file"`
	Format     string       `json:"format"`
	Version    int          `json:"version"`
	Size       int64        `json:"size"` // of the manifest and the parts
	Region     *uint64      `json:"region,omitempty"`
	Generation string       `json:"generation,omitempty"`
	Parts      int          `json:"parts"`
	Series     uint64       `json:"series"`
	First      *seriesID    `json:"first,omitempty"` // none in an artifact without series
	Last       *seriesID    `json:"last,omitempty"`
	Tags       []tagReport  `json:"tags"`
	Bucket     *bucketRange `json:"bucket,omitempty"`
}

type seriesID struct {
	Table uint32 `json:"table_id"`
	TSID  uint64 `json:"tsid"`
}

func newSeriesID(id series.ID) *seriesID { return &seriesID{id.Table, id.TSID} }

type tagReport struct {
	Name     string  `json:"name"`
	ColumnID *uint32 `json:"column_id,omitempty"`
}

type bucketRange struct {
	Start series.Timestamp `json:"start"`
	End   series.Timestamp `json:"end"`
}

// artifactInfo prints what an artifact is.
func (e *env) artifactInfo(ctx context.Context, d *document, out *tableFlags) error {
	a := d.artifact
	r := &seriesReport{File: d.name, Format: "series", Version: series.Version, Size: d.size, Parts: a.NumParts(), Tags: []tagReport{}}
	m := a.Manifest()
	for _, t := range a.Tags() {
		tag := tagReport{Name: t.Name}
		if m != nil {
			tag.ColumnID = &t.ColumnID
		}
		r.Tags = append(r.Tags, tag)
	}
	if m != nil {
		r.Region, r.Generation = &m.RegionID, m.Generation.String()
		for i, f := range m.Files {
			r.Series += f.NumSeries
			r.Size += int64(f.FileSize)
			if i == 0 {
				r.First = newSeriesID(f.First)
			}
			r.Last = newSeriesID(f.Last)
		}
		if c := &m.Coverage; c.BucketStart != nil && c.BucketEnd != nil {
			r.Bucket = &bucketRange{*c.BucketStart, *c.BucketEnd}
		}
	} else {
		p, err := a.Part(ctx, 0)
		if err != nil {
			return err
		}
		r.First, r.Last = newSeriesID(p.First), newSeriesID(p.Last)
		for i := range p.Leaves {
			blocks, err := a.Blocks(ctx, 0, i)
			if err != nil {
				return err
			}
			for _, b := range blocks {
				r.Series += uint64(b.Series)
			}
		}
	}
	if out.asJSON() {
		return e.printJSON(r, out)
	}
	row := func(name, format string, args ...any) {
		fmt.Fprintf(e.out, "%-10s %s\n", name, fault.OneLine(fmt.Sprintf(format, args...)))
	}
	row("file", "%s", r.File)
	row("format", "series")
	row("version", "%d", r.Version)
	row("size", "%d", r.Size)
	if m == nil {
		row("manifest", "none, this is a part alone")
	} else {
		row("region", "%d", *r.Region)
		row("generation", "%s", r.Generation)
		row("parts", "%d", r.Parts)
	}
	row("series", "%d", r.Series)
	if r.First != nil {
		row("first", "%d/%d", r.First.Table, r.First.TSID)
		row("last", "%d/%d", r.Last.Table, r.Last.TSID)
	}
	names := make([]string, len(r.Tags))
	for i, t := range r.Tags {
		names[i] = quotedName(t.Name)
	}
	row("tags", "%s", cmp.Or(strings.Join(names, ", "), "none"))
	if b := r.Bucket; b != nil {
		row("bucket", "%s to %s", timeText(b.Start), timeText(b.End))
	}
	return nil
}

// timeText is an instant as a number with its unit.
func timeText(t series.Timestamp) string {
	short := map[string]string{"Second": "s", "Millisecond": "ms", "Microsecond": "us", "Nanosecond": "ns"}
	return strconv.FormatInt(t.Value, 10) + short[t.Unit]
}

// partRow is a line of ls: a part, a leaf, a block, or a column of a block.
type partRow struct {
	Path   string    `json:"path"`
	Key    any       `json:"key"` // the last step
	Kind   string    `json:"kind"`
	Length *int64    `json:"length,omitempty"` // series; of a column, those that are not null
	Bytes  int64     `json:"bytes"`
	First  *seriesID `json:"first,omitempty"`
	Last   *seriesID `json:"last,omitempty"`
	*chunkRow
}

// chunkRow is what a leaf says of a column, too.
type chunkRow struct {
	Decoded     int64   `json:"decoded"`
	Encoding    uint16  `json:"encoding"`
	Compression uint16  `json:"compression"`
	Nulls       int     `json:"nulls"`
	Min         *string `json:"min,omitempty"`
	Max         *string `json:"max,omitempty"`
}

// seriesPath is the path of what has these numbers in an artifact: a part, a leaf, a block.
func seriesPath(at ...int) string {
	text := fmt.Sprintf("part-%d", at[0])
	for _, i := range at[1:] {
		text += "/" + strconv.Itoa(i)
	}
	return text
}

// stored is what the chunks of a block take.
func stored(b *series.Block) (n int64) {
	for i := range b.Columns {
		n += b.Columns[i].Stored
	}
	return n
}

// each passes what is below a place.
func (a *artifact) each(ctx context.Context, s seriesPlace, pass func(*partRow) error) error {
	switch s.level {
	case 0:
		for i := range a.NumParts() {
			r := &partRow{Path: seriesPath(i), Key: seriesPath(i), Kind: "part"}
			if m := a.Manifest(); m != nil { // which has it all
				f := &m.Files[i]
				n := int64(f.NumSeries)
				r.Length, r.Bytes, r.First, r.Last = &n, int64(f.FileSize), newSeriesID(f.First), newSeriesID(f.Last)
			} else {
				p, err := a.Part(ctx, i)
				if err != nil {
					return err
				}
				r.Bytes, r.First, r.Last = p.Size, newSeriesID(p.First), newSeriesID(p.Last)
			}
			if err := pass(r); err != nil {
				return err
			}
		}
		return nil
	case 1:
		return a.eachLeaf(ctx, s, pass)
	}
	blocks, err := a.Blocks(ctx, s.at[0], s.at[1])
	if err != nil {
		return err
	}
	for i := range blocks {
		b := &blocks[i]
		switch {
		case s.level == 2:
			n := int64(b.Series)
			r := &partRow{Path: seriesPath(s.at[0], s.at[1], i), Key: i, Kind: "block", Length: &n, Bytes: stored(b), First: newSeriesID(b.First), Last: newSeriesID(b.Last)}
			if err := pass(r); err != nil {
				return err
			}
		case i == s.at[2]:
			for k := range b.Columns {
				c := &b.Columns[k]
				if s.column != "" && s.column != c.Name {
					continue
				}
				if err := pass(newChunkRow(c, b, s.at)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (a *artifact) eachLeaf(ctx context.Context, s seriesPlace, pass func(*partRow) error) error {
	p, err := a.Part(ctx, s.at[0])
	if err != nil {
		return err
	}
	for i := range p.Leaves {
		l := &p.Leaves[i]
		blocks, err := a.Blocks(ctx, s.at[0], i)
		if err != nil {
			return err
		}
		n, bytes := int64(0), l.Stored
		for k := range blocks {
			n += int64(blocks[k].Series)
			bytes += stored(&blocks[k])
		}
		r := &partRow{Path: seriesPath(s.at[0], i), Key: i, Kind: "leaf", Length: &n, Bytes: bytes, First: newSeriesID(l.First), Last: newSeriesID(l.Last)}
		if err := pass(r); err != nil {
			return err
		}
	}
	return nil
}

func newChunkRow(c *series.Column, b *series.Block, at [3]int) *partRow {
	path := msglc.Path{msglc.TextStep(seriesPath(at[0])), msglc.TextStep(strconv.Itoa(at[1])), msglc.TextStep(strconv.Itoa(at[2])), msglc.TextStep(c.Name)}
	n := int64(b.Series - c.Nulls)
	r := &partRow{Path: pathText(path), Key: c.Name, Kind: "column", Length: &n, Bytes: c.Stored,
		chunkRow: &chunkRow{Decoded: c.Decoded, Encoding: c.Encoding, Compression: c.Compression, Nulls: c.Nulls}}
	if c.HasRange {
		r.Min, r.Max = &c.Min, &c.Max
	}
	return r
}

// ends are what a line shows of the ends of a row: identifiers, or values.
func (r *partRow) ends() (first, last string) {
	first, last = "-", "-"
	switch {
	case r.First != nil:
		first, last = fmt.Sprintf("%d/%d", r.First.Table, r.First.TSID), fmt.Sprintf("%d/%d", r.Last.Table, r.Last.TSID)
	case r.chunkRow != nil && r.Min != nil:
		first, last = quoted(beginning([]byte(*r.Min))), quoted(beginning([]byte(*r.Max)))
	}
	return first, last
}

// artifactLs lists parts, the leaves of a part, the blocks of a leaf, or the columns of a block.
func (e *env) artifactLs(ctx context.Context, a *artifact, path string, out *tableFlags) error {
	s, err := a.find(ctx, path)
	if err != nil {
		return err
	}
	if s.level < 0 || s.level < 3 && s.column != "" {
		return fault.New(fault.Invalid, "", "ls lists parts, leaves, blocks and their columns; get prints series").On(path).In(a.Name())
	}
	list := &jsonArray{e: e, pretty: out.pretty}
	if !out.asJSON() {
		first, last := "FIRST", "LAST"
		if s.level == 3 {
			first, last = "LEAST", "GREATEST"
		}
		fmt.Fprintf(e.out, "%-6s %10s %14s  %-26s %-26s %s\n", "KIND", "LENGTH", "BYTES", first, last, "PATH")
	}
	err = a.each(ctx, s, func(r *partRow) error {
		if out.asJSON() {
			return list.add(r)
		}
		length := "-"
		if r.Length != nil {
			length = strconv.FormatInt(*r.Length, 10)
		}
		first, last := r.ends()
		_, err := fmt.Fprintf(e.out, "%-6s %10s %14d  %-26s %-26s %s\n", r.Kind, length, r.Bytes, first, last, r.Path)
		return err
	})
	if err != nil {
		return err
	}
	if out.asJSON() {
		return list.end("\n")
	}
	return nil
}

// artifactUsage is what du prints of an artifact: the bytes by what is below PATH and, in another cut, by column. Total is
// those of the columns, of the pages and the others together.
type artifactUsage struct {
	Path     string  `json:"path"`
	Total    int64   `json:"total"`
	Children []duRow `json:"children"`
	Columns  []duRow `json:"columns"`
	Pages    int64   `json:"pages"`
	Other    int64   `json:"other"`
}

// artifactDu shows where the bytes of an artifact are.
func (e *env) artifactDu(ctx context.Context, a *artifact, path string, levels int, out *tableFlags) error {
	s, err := a.find(ctx, path)
	if err != nil {
		return err
	}
	if s.level < 0 || s.column != "" {
		return fault.New(fault.Invalid, "", "du shows the bytes of an artifact, its parts, leaves and blocks; series have none of their own").On(path).In(a.Name())
	}
	r, err := a.usage(ctx, s, path, levels)
	if err != nil {
		return err
	}
	if out.asJSON() {
		return e.printJSON(r, out)
	}
	row := func(bytes int64, text string) {
		fmt.Fprintf(e.out, "%14d %6s  %s\n", bytes, share(bytes, r.Total), text)
	}
	for _, rows := range [][]duRow{r.Children, r.Columns} {
		for _, c := range rows {
			row(c.Bytes, c.Path)
		}
	}
	if r.Pages > 0 {
		row(r.Pages, "(pages)")
	}
	if r.Other > 0 {
		row(r.Other, "(manifest, headers and trailers)")
	}
	row(r.Total, "total")
	return nil
}

func (a *artifact) usage(ctx context.Context, s seriesPlace, path string, levels int) (*artifactUsage, error) {
	r := &artifactUsage{Path: path, Children: []duRow{}, Columns: []duRow{}}
	if s.level < 3 {
		if err := a.children(ctx, s, levels, r); err != nil {
			return nil, err
		}
	}
	columns := make(map[string]int64)
	for i := range a.NumParts() {
		if s.level > 0 && i != s.at[0] {
			continue
		}
		p, err := a.Part(ctx, i)
		if err != nil {
			return nil, err
		}
		if s.level < 2 {
			r.Total += p.Size
			if p.Depth == 2 {
				r.Pages += p.Root.Stored
			}
		}
		for k := range p.Leaves {
			if s.level > 1 && k != s.at[1] {
				continue
			}
			if s.level < 3 {
				r.Pages += p.Leaves[k].Stored
			}
			blocks, err := a.Blocks(ctx, i, k)
			if err != nil {
				return nil, err
			}
			for n := range blocks {
				if s.level > 2 && n != s.at[2] {
					continue
				}
				for _, c := range blocks[n].Columns {
					columns[c.Name] += c.Stored
				}
			}
		}
	}
	in := int64(0)
	for _, name := range slices.Sorted(maps.Keys(columns)) {
		r.Columns = append(r.Columns, duRow{pathText(msglc.Path{msglc.TextStep("*"), msglc.TextStep(name)}), columns[name]})
		in += columns[name]
	}
	switch s.level {
	case 0:
		r.Total += a.manifestSize
	case 2, 3:
		r.Total = in + r.Pages
	}
	r.Other = r.Total - in - r.Pages
	for _, rows := range [][]duRow{r.Children, r.Columns} {
		slices.SortStableFunc(rows, func(a, b duRow) int { return cmp.Compare(b.Bytes, a.Bytes) })
	}
	return r, nil
}

// children adds what is below a place, as deep as is wanted.
func (a *artifact) children(ctx context.Context, s seriesPlace, levels int, to *artifactUsage) error {
	return a.each(ctx, s, func(row *partRow) error {
		to.Children = append(to.Children, duRow{row.Path, row.Bytes})
		if levels == 1 || s.level == 2 {
			return nil
		}
		below, err := a.find(ctx, row.Path)
		if err != nil {
			return err
		}
		return a.children(ctx, below, levels-1, to)
	})
}

// seriesPrinter prints series as JSON.
type seriesPrinter struct {
	*env
	ctx    context.Context
	pretty bool
	buf    []byte
}

// add appends a series, or one column of it.
func (p *seriesPrinter) add(r series.Record, column string) (err error) {
	switch column {
	case "":
		p.buf, err = seriesjson.Append(p.buf, r)
	case tsidColumn:
		p.buf = strconv.AppendUint(p.buf, r.TSID, 10)
	case rowCountColumn:
		p.buf = strconv.AppendUint(p.buf, r.RowCount, 10)
	default:
		k := slices.IndexFunc(r.Labels, func(l series.Label) bool { return l.Name == column })
		if k < 0 {
			p.buf = append(p.buf, "null"...)
			return nil
		}
		p.buf, _, err = value.AppendJSONString(p.buf, r.Labels[k].Value, &value.JSONOptions{})
	}
	return err
}

// spill gives what is there to the output when it is much.
func (p *seriesPrinter) spill() error {
	if len(p.buf) < 32<<10 || p.pretty {
		return nil
	}
	_, err := p.out.Write(p.buf)
	p.buf = p.buf[:0]
	return cmp.Or(err, p.ctx.Err())
}

// line ends a line.
func (p *seriesPrinter) line() error {
	if p.pretty {
		var b bytes.Buffer
		if err := json.Indent(&b, p.buf, "", "  "); err != nil {
			return err
		}
		p.buf = append(p.buf[:0], b.Bytes()...)
	}
	p.buf = append(p.buf, '\n')
	_, err := p.out.Write(p.buf)
	p.buf = p.buf[:0]
	return cmp.Or(err, p.ctx.Err())
}

// artifactCat prints the series of an artifact, a line each.
func (e *env) artifactCat(ctx context.Context, a *artifact, out *jsonFlags) error {
	p := &seriesPrinter{env: e, ctx: ctx, pretty: out.Pretty}
	for r, err := range a.Records(ctx, allSeries) {
		if err == nil {
			err = p.add(r, "")
		}
		if err == nil {
			err = p.line()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// artifactGet prints what the paths name, each as a line of JSON.
func (e *env) artifactGet(ctx context.Context, a *artifact, paths []string, out *jsonFlags) error {
	p := &seriesPrinter{env: e, ctx: ctx, pretty: out.Pretty}
	var row []seriesPlace // single series, which are looked up together
	for _, path := range paths {
		s, err := a.find(ctx, path)
		if err == nil && s.one {
			row = append(row, s)
			continue
		}
		if err := p.getRow(a, row); err != nil {
			return err
		}
		row = row[:0]
		if err == nil {
			err = p.get(a, s)
		}
		if err == nil {
			err = p.shownLine()
		}
		if err != nil {
			return err
		}
	}
	return p.getRow(a, row)
}

// shownLine ends a line, and shows it.
func (p *seriesPrinter) shownLine() error {
	if err := p.line(); err != nil {
		return err
	}
	return p.out.Flush()
}

// getRow prints single series.
func (p *seriesPrinter) getRow(a *artifact, row []seriesPlace) error {
	ids := make([]series.ID, len(row))
	for i := range row {
		ids[i] = row[i].First
	}
	i := 0
	for r, err := range a.LookupAll(p.ctx, ids) {
		if err == nil {
			err = p.add(r, row[i].column)
		}
		if err == nil {
			err = p.shownLine()
		}
		if err != nil {
			return err
		}
		i++
	}
	return nil
}

// get prints the series of a range.
func (p *seriesPrinter) get(a *artifact, s seriesPlace) error {
	p.buf = append(p.buf, '[')
	separate := false
	for r, err := range a.Records(p.ctx, s.Range) {
		if err != nil {
			return err
		}
		if separate {
			p.buf = append(p.buf, ',')
		}
		separate = true
		if err := p.add(r, s.column); err != nil {
			return err
		}
		if err := p.spill(); err != nil {
			return err
		}
	}
	if !separate && s.level < 0 {
		return fault.New(fault.NotFound, "", "there is no such table").In(a.Name()).On(strconv.FormatUint(uint64(s.First.Table), 10))
	}
	p.buf = append(p.buf, ']')
	return nil
}

// catBelow prints the series of all artifacts below a folder, one artifact behind the other. One that is bad is named and
// passed, unless strict.
func (e *env) catBelow(ctx context.Context, dirs []string, in *sourceFlags, out *jsonFlags) error {
	good := 0
	var failed error
	for _, dir := range dirs {
		err := e.printValues(ctx, dir, nil, in, out)
		if err == nil {
			good++
			continue
		}
		if ctx.Err() != nil || in.artifacts.strict || errors.Is(err, errReaderLeft) || e.stdout.err != nil {
			return err
		}
		if _, bad := seriesFault(err); !bad && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := e.out.Flush(); err != nil {
			return err
		}
		e.say("%s", e.hinted(err))
		failed = err
	}
	switch {
	case failed != nil && good == 0:
		return silent{failed}
	case failed != nil:
		e.partial = true
	}
	return nil
}
