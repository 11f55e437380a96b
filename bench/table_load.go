package main

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/bytedance/sonic"
	"google.golang.org/protobuf/proto"

	"github.com/spilehq/spile/tcb"
)

func measureTables(s *setup) ([]row, error) {
	var rows []row
	for _, of := range s.tableInputs() {
		// Nothing but the encoded tables lives on: what else there is, the collector would visit during every run.
		jobs, err := tableLoads(of.name, of.make())
		if err != nil {
			return nil, err
		}
		measured, err := s.measureJobs(jobs)
		if err != nil {
			return nil, err
		}
		rows = append(rows, measured...)
	}
	jobs, err := columnJobs(s.columnRows())
	if err != nil {
		return nil, err
	}
	columns, err := s.measureJobs(jobs)
	if err != nil {
		return nil, err
	}
	for i := range columns {
		columns[i].judgeAllocs(s.columnRows())
	}
	rows = append(rows, columns...)
	written, err := s.measureTableWrite()
	return append(rows, written...), err
}

// tableInput is the set of tables or the long one.
type tableInput struct {
	name string
	make func() []gameTable
}

func (s *setup) tableInputs() []tableInput {
	return []tableInput{
		{"71 tables, " + count(float64(s.growth+otherRows)) + " rows", func() []gameTable { return tableSet(s.growth) }},
		{"one table, " + count(float64(s.rows)) + " rows", func() []gameTable { return []gameTable{longTable(s.rows)} }},
	}
}

// encodedTable is a table in the forms that loading starts from.
type encodedTable struct {
	shape                        *shape
	tcb, json, protobuf, msgpack []byte
}

func encodeTables(tables []gameTable) (list []encodedTable, err error) {
	for i := range tables {
		t, e := &tables[i], encodedTable{shape: tables[i].shape}
		if e.tcb, err = t.tcb(); err != nil {
			return nil, err
		}
		if e.json, err = t.json(); err != nil {
			return nil, err
		}
		if e.protobuf, err = t.protobuf(); err != nil {
			return nil, err
		}
		if e.msgpack, err = t.shape.msgpack(t.rows); err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// tableLoads are the jobs of loading all of some tables.
func tableLoads(name string, tables []gameTable) ([]job, error) {
	list, err := encodeTables(tables)
	if err != nil {
		return nil, err
	}
	rounds := 0
	size := 0
	for _, e := range list {
		size += len(e.json)
	}
	if size > 100e6 {
		rounds = 3
	}
	viaJSON := loading("encoding/json to structs", list, func(e *encodedTable) (any, error) {
		rows := e.shape.newRows()
		return rows, json.Unmarshal(e.json, rows)
	}, rowsBehind)
	viaSonic := loading("sonic to structs", list, func(e *encodedTable) (any, error) {
		rows := e.shape.newRows()
		return rows, sonic.Unmarshal(e.json, rows)
	}, rowsBehind)
	viaProtobuf := loading("protobuf, generated code", list, func(e *encodedTable) (any, error) {
		m := e.shape.message()
		return m, proto.Unmarshal(e.protobuf, m)
	}, func(e *encodedTable, v any) (any, error) { return e.shape.rowsOf(v.(proto.Message)), nil })
	viaMsgp := loading("msgp, generated code", list, func(e *encodedTable) (any, error) { return e.shape.readMsgpack(e.msgpack) }, asItIs)
	return []job{
		{
			section: "tables", name: name + ", to typed columns", oneCore: true, allocated: true, rounds: rounds,
			ours:  loadColumns(list),
			peers: []contender{viaJSON.atLeast(5), viaSonic.atLeast(3), viaProtobuf.atLeast(2), viaMsgp},
		},
		{
			section: "tables", name: name + ", to structs", oneCore: true, rounds: rounds,
			ours: loading("Spile", list, func(e *encodedTable) (any, error) {
				t, err := openTable(e.tcb)
				if err != nil {
					return nil, err
				}
				return e.shape.load(t)
			}, asItIs),
			peers: []contender{viaJSON, viaSonic, viaProtobuf.atLeast(2), viaMsgp},
		},
	}, nil
}

// loading is a contender that decodes each table, and holds all of them at its end. rows gives the rows of what was
// decoded.
func loading(name string, list []encodedTable, decode func(*encodedTable) (any, error), rows func(*encodedTable, any) (any, error)) contender {
	load := func() ([]any, error) {
		out := make([]any, len(list))
		for i := range list {
			var err error
			if out[i], err = decode(&list[i]); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return contender{
		name: name,
		run:  func() error { _, err := load(); return err },
		answer: func() (any, error) {
			out, err := load()
			if err != nil {
				return nil, err
			}
			for i := range out {
				if out[i], err = rows(&list[i], out[i]); err != nil {
					return nil, err
				}
			}
			return out, nil
		},
	}
}

func asItIs(_ *encodedTable, v any) (any, error) { return v, nil }

func loadColumns(list []encodedTable) contender {
	type columns struct {
		rows int
		all  []*tcb.Column
	}
	return loading("Spile", list, func(e *encodedTable) (any, error) {
		t, err := openTable(e.tcb)
		if err != nil {
			return nil, err
		}
		all, err := t.Read(context.Background())
		return columns{t.Rows(), all}, err
	}, func(e *encodedTable, v any) (any, error) {
		c := v.(columns)
		return e.shape.rowsOfColumns(c.rows, c.all)
	})
}

// rowsBehind are the rows that a pointer leads to.
func rowsBehind(_ *encodedTable, v any) (any, error) {
	return reflect.ValueOf(v).Elem().Interface(), nil
}
