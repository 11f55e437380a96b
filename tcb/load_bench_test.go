package tcb

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// bench has the columns of a table of a game.
type benchRow struct {
	ID     int32       `tcb:"1"`
	Name   string      `tcb:"2"`
	Grade  grade       `tcb:"3,enum"`
	HP     int32       `tcb:"4"`
	Attack float32     `tcb:"5"`
	Price  int64       `tcb:"6"`
	Hidden bool        `tcb:"7"`
	Since  time.Time   `tcb:"8"`
	Note   Opt[string] `tcb:"9"`
	Loot   []int32     `tcb:"10"`
}

func benchRows(n int) []benchRow {
	rows := make([]benchRow, n)
	for i := range rows {
		rows[i] = benchRow{
			ID: int32(1000 + i), Name: fmt.Sprintf("Hero_of_%d", i/3), Grade: grade(i % 5), HP: int32(i * 7919 % 9000), Attack: float32(i%400) / 4,
			Price: int64(i*104729) % 1e9, Hidden: i%9 == 0, Since: time.Date(2020+i%5, 1, 1+i%300, 0, 0, 0, 0, time.UTC), Loot: make([]int32, i%4),
		}
		for k := range rows[i].Loot {
			rows[i].Loot[k] = int32(i*31+k) % 1000
		}
		if i%6 == 0 {
			rows[i].Note = Some("seasonal")
		}
	}
	return rows
}

func BenchmarkLoad(b *testing.B) {
	const n = 20000
	file, err := Marshal(nil, benchRows(n), nil)
	if err != nil {
		b.Fatal(err)
	}
	table := openFile(b, file)
	ctx := context.Background()
	report := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
	}
	b.Run("columns", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := table.Read(ctx); err != nil {
				b.Fatal(err)
			}
		}
		report(b)
	})
	b.Run("structs", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Load[benchRow](ctx, table); err != nil {
				b.Fatal(err)
			}
		}
		report(b)
	})
	b.Run("iter", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, err := range Iter[benchRow](ctx, table) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
		report(b)
	})
}
