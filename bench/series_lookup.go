package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/parquet-go/parquet-go"

	"github.com/spilehq/spile/series"
)

// parquetLookup finds series in a Parquet file by the index of its pages.
type parquetLookup struct {
	file   *os.File
	pq     *parquet.File
	labels []string
	groups []lookupGroup
}

type lookupGroup struct {
	group        parquet.RowGroup
	tables, ids  parquet.ColumnIndex
	tablePlaces  parquet.OffsetIndex
	idPlaces     parquet.OffsetIndex
	columnsOther []parquet.ColumnChunk // rows, and the labels
}

func openParquetLookup(path string, labels []string) (p *parquetLookup, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	p = &parquetLookup{file: f, labels: labels}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if p.pq, err = parquet.OpenFile(f, info.Size(), parquet.SkipBloomFilters(true)); err != nil {
		return nil, err
	}
	for _, g := range p.pq.RowGroups() {
		chunks := g.ColumnChunks()
		l := lookupGroup{group: g, columnsOther: chunks[2:]}
		var errs [4]error
		l.tables, errs[0] = chunks[0].ColumnIndex()
		l.tablePlaces, errs[1] = chunks[0].OffsetIndex()
		l.ids, errs[2] = chunks[1].ColumnIndex()
		l.idPlaces, errs[3] = chunks[1].OffsetIndex()
		if err := errors.Join(errs[:]...); err != nil {
			return nil, err
		}
		p.groups = append(p.groups, l)
	}
	return p, nil
}

func (p *parquetLookup) Close() error { return p.file.Close() }

// find returns a series.
func (p *parquetLookup) find(id series.ID) (series.Record, error) {
	for i := range p.groups {
		g := &p.groups[i]
		for page := range g.tables.NumPages() {
			if id.Table < g.tables.MinValue(page).Uint32() || id.Table > g.tables.MaxValue(page).Uint32() {
				continue
			}
			from, to := pageRows(g.tablePlaces, page, g.group.NumRows())
			for k := range g.ids.NumPages() {
				first, end := pageRows(g.idPlaces, k, g.group.NumRows())
				if end <= from || first >= to || id.TSID < g.ids.MinValue(k).Uint64() || id.TSID > g.ids.MaxValue(k).Uint64() {
					continue
				}
				row, ok, err := g.scan(id, max(from, first), min(to, end))
				if err != nil {
					return series.Record{}, err
				}
				if ok {
					return p.record(g, id, row)
				}
			}
		}
	}
	return series.Record{}, fmt.Errorf("no series %s", id)
}

func pageRows(o parquet.OffsetIndex, page int, rows int64) (from, to int64) {
	if page+1 < o.NumPages() {
		rows = o.FirstRowIndex(page + 1)
	}
	return o.FirstRowIndex(page), rows
}

// scan looks for a series in some rows.
func (g *lookupGroup) scan(id series.ID, from, to int64) (row int64, ok bool, err error) {
	values := make([]parquet.Value, to-from)
	chunks := g.group.ColumnChunks()
	if err := readRows(chunks[1], from, values); err != nil {
		return 0, false, err
	}
	for k, v := range values {
		if v.Uint64() != id.TSID {
			continue
		}
		var table [1]parquet.Value
		if err := readRows(chunks[0], from+int64(k), table[:]); err != nil {
			return 0, false, err
		}
		if table[0].Uint32() == id.Table {
			return from + int64(k), true, nil
		}
	}
	return 0, false, nil
}

// readRows reads the values of some rows of a column.
func readRows(c parquet.ColumnChunk, from int64, values []parquet.Value) error {
	pages := c.Pages()
	defer pages.Close()
	if err := pages.SeekToRow(from); err != nil {
		return err
	}
	for n := 0; n < len(values); {
		page, err := pages.ReadPage()
		if err != nil {
			return err
		}
		k, err := page.Values().ReadValues(values[n:])
		parquet.Release(page)
		if err != nil && err != io.EOF {
			return err
		}
		n += k
	}
	return nil
}

func (p *parquetLookup) record(g *lookupGroup, id series.ID, row int64) (series.Record, error) {
	r := series.Record{ID: id}
	for i, c := range g.columnsOther {
		var v [1]parquet.Value
		pages := c.Pages()
		err := pages.SeekToRow(row)
		if err == nil {
			var page parquet.Page
			if page, err = pages.ReadPage(); err == nil {
				if _, err = page.Values().ReadValues(v[:]); err == io.EOF {
					err = nil
				}
				if i == 0 {
					r.RowCount = v[0].Uint64()
				} else if !v[0].IsNull() {
					r.Labels = append(r.Labels, series.Label{Name: p.labels[i-1], Value: string(v[0].ByteArray())})
				}
				parquet.Release(page)
			}
		}
		pages.Close()
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// lookups is a job that finds series at random places, one after another.
type lookups struct {
	ids  []series.ID
	next int
}

func (l *lookups) id() series.ID {
	l.next++
	return l.ids[l.next%len(l.ids)]
}

// contender looks up with find.
func (l *lookups) contender(name string, find func(series.ID) (series.Record, error)) contender {
	return contender{
		name: name,
		run: func() error {
			_, err := find(l.id())
			return err
		},
		answer: func() (any, error) {
			var all []series.Record
			for _, id := range l.ids[:min(100, len(l.ids))] {
				r, err := find(id)
				if err != nil {
					return nil, err
				}
				all = append(all, r)
			}
			return all, nil
		},
	}
}

func lookupIn(a *series.Artifact) func(series.ID) (series.Record, error) {
	return func(id series.ID) (series.Record, error) { return a.Lookup(context.Background(), id) }
}
