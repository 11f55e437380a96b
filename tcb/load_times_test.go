package tcb

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/spilehq/spile/fault"
)

func TestLoadTimes(t *testing.T) {
	type row struct {
		At   time.Time                 `tcb:"1"`
		Took int64                     `tcb:"2,timespan"`
		Log  []time.Time               `tcb:"3"`
		Gaps Opt[[]Opt[time.Duration]] `tcb:"4"`
		End  *time.Time                `tcb:"5"`
	}
	end := time.Date(1969, 12, 31, 23, 59, 59, 500_000_000, time.UTC)
	end2 := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	none := []Opt[time.Duration]{}
	got := mustLoad[row](t, openVector(t, "times"))
	sameValues(t, got, []row{
		{Log: []time.Time{}, Gaps: Opt[[]Opt[time.Duration]]{Value: none}},
		{At: time.Date(9999, 12, 31, 23, 59, 59, 999_999_900, time.UTC), Took: math.MinInt64,
			Log:  []time.Time{time.Date(1970, 1, 1, 0, 0, 0, 100, time.UTC)},
			Gaps: Some([]Opt[time.Duration]{Some(time.Second), {}}), End: &end},
		{At: time.Date(1600, 2, 29, 12, 34, 56, 789_000_000, time.UTC), Took: math.MaxInt64,
			Log:  []time.Time{time.Unix(0, math.MaxInt64/100*100).UTC(), time.Unix(math.MaxInt64/1_000_000_000, 854775900).UTC()},
			Gaps: Some(none), End: &end2},
		{At: time.Date(2026, 11, 30, 23, 59, 59, 250_000_000, time.UTC), Took: -1, Log: []time.Time{},
			Gaps: Some([]Opt[time.Duration]{Some(-24 * time.Hour), Some(86399900 * time.Millisecond)})},
	})
	if got[0].At != (time.Time{}) {
		t.Error("tick 0 is not the zero time")
	}

	// A duration ends at 292 years: the second row has the first that is beyond it.
	type spans struct {
		Took time.Duration `tcb:"2"`
	}
	rows, err := Load[spans](context.Background(), openVector(t, "times"))
	want := "tcb: t.tcb: row 1, column 2 (Took): the timespan -10675199.02:48:05.4775808, and a time.Duration ends at 292 years; an int64 with the option timespan holds it"
	if rows != nil || !errors.Is(err, fault.Limit) || err.Error() != want {
		t.Errorf("%v, %v", rows, err)
	}
	for row, err := range Iter[spans](context.Background(), openVector(t, "times")) {
		if row != nil || !errors.Is(err, fault.Limit) {
			t.Errorf("Iter: %v, %v", row, err)
		}
	}
}

func TestLoadTimesRefused(t *testing.T) {
	i64 := func(tag int32, t Type, present Bitmap, offsets []int32, v ...int64) *Column {
		t.Element = I64
		return &Column{Tag: tag, Type: t, Rows: 3, Present: present, Offsets: offsets, Int64s: v, ElementPresent: present}
	}
	const last = math.MaxInt64 / 100
	table := tableOf(t, 3,
		i64(1, Type{}, nil, nil, 0, MaxDateTime, MaxDateTime+1), i64(2, Type{}, nil, nil, last, -last, last+1),
		i64(3, Type{Kind: Array}, nil, []int32{0, 1, 1, 3}, 5, 6, -1),
		i64(4, Type{Optional: true}, Bitmap{5}, nil, last, 0, -last-1),
		i64(5, Type{Kind: Array, ElementOptional: true}, Bitmap{5}, []int32{0, 2, 2, 3}, 5, 0, -2))
	type (
		at struct {
			V time.Time `tcb:"1"`
		}
		took struct {
			V time.Duration `tcb:"2"`
		}
		log struct {
			V []time.Time `tcb:"3"`
		}
		gap struct {
			V *time.Duration `tcb:"4"`
		}
		list struct {
			V []*time.Time `tcb:"5"`
		}
	)
	ctx := context.Background()
	for _, c := range []struct {
		load  func() error
		class error
		want  string
	}{
		{func() error { _, err := Load[at](ctx, table); return err }, fault.Invalid, "row 2, column 1 (V): 3155378976000000000 ticks are no datetime, 0 to 3155378975999999999 are"},
		{func() error { _, err := Load[took](ctx, table); return err }, fault.Limit, "row 2, column 2 (V): the timespan 106751.23:47:16.8547759, and"},
		{func() error { _, err := Load[log](ctx, table); return err }, fault.Invalid, "row 2, column 3 (V): -1 ticks"},
		{func() error { _, err := Load[gap](ctx, table); return err }, fault.Limit, "row 2, column 4 (V): the timespan -106751"},
		{func() error { _, err := Load[list](ctx, table); return err }, fault.Invalid, "row 2, column 5 (V): -2 ticks"},
	} {
		if err := c.load(); !errors.Is(err, c.class) || !strings.HasPrefix(err.Error(), "tcb: t.tcb: "+c.want) {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
}
