package tcb

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/spilehq/spile/fault"
)

func TestUnique(t *testing.T) {
	rows := benchRows(1000)
	var calls atomic.Int32
	byID := Unique(rows, func(r *benchRow) int32 { calls.Add(1); return r.ID })
	if calls.Load() != 0 {
		t.Error("the index was made before it was asked")
	}
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for i := range rows {
				if r, err := byID.Get(int32(1000 + i)); err != nil || r != &rows[i] {
					t.Errorf("row %d: %v, %v", i, r, err)
				}
			}
		})
	}
	work.Wait()
	if err := byID.Build(); err != nil || calls.Load() != 1000 {
		t.Errorf("%v, %d calls", err, calls.Load())
	}
	if r, err := byID.Get(7); r != nil || !errors.Is(err, fault.NotFound) || err.Error() != "tcb: no row has the key 7" {
		t.Errorf("%v, %v", r, err)
	}
	twice := Unique(rows, func(r *benchRow) string { return r.Name })
	for range 2 {
		r, err := twice.Get("Hero_of_0")
		if r != nil || !errors.Is(err, fault.Conflict) || err.Error() != "tcb: rows 0 and 1 have the same key, Hero_of_0" {
			t.Errorf("%v, %v", r, err)
		}
	}
	nan := Unique(rows, func(*benchRow) float64 { return math.NaN() })
	if err := nan.Build(); !errors.Is(err, fault.Invalid) {
		t.Error(err)
	}
	none := Unique(nil, func(*benchRow) int32 { return 0 })
	if _, err := none.Get(0); !errors.Is(err, fault.NotFound) {
		t.Error(err)
	}
}

func TestMulti(t *testing.T) {
	rows := benchRows(1000)
	var calls atomic.Int32
	byGrade := Multi(rows, func(r *benchRow) grade { calls.Add(1); return r.Grade })
	if calls.Load() != 0 {
		t.Error("the index was made before it was asked")
	}
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for g := range grade(5) {
				list := byGrade.Get(g)
				if len(list) != 200 || cap(list) != 200 {
					t.Errorf("grade %d: %d rows, capacity %d", g, len(list), cap(list))
				}
				for i, r := range list {
					if r != &rows[5*i+int(g)] {
						t.Errorf("grade %d: row %d is %d", g, i, r.ID)
					}
				}
			}
		})
	}
	work.Wait()
	if list := byGrade.Get(5); len(list) != 0 || calls.Load() != 1000 {
		t.Errorf("%v, %d calls", list, calls.Load())
	}
}
