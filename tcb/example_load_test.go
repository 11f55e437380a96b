package tcb_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/tcb"
)

type Class int32

type Hero struct {
	ID    int32           `tcb:"1"`
	Name  string          `tcb:"2"`
	Class Class           `tcb:"3,enum"`
	Guild tcb.Opt[string] `tcb:"4"`
	Born  time.Time       `tcb:"5"`
	Stats struct {
		Speed float64 `tcb:"6"`
	}
	Loot []Drop // an array of records
}

type Drop struct {
	Item string   `tcb:"7"`
	Rate *float32 `tcb:"8"`
}

func someHeroes() []Hero {
	rate := float32(0.25)
	heroes := []Hero{
		{ID: 1, Name: "Ada", Class: 2, Guild: tcb.Some("Owls"), Born: time.Date(1815, 12, 10, 0, 0, 0, 0, time.UTC)},
		{ID: 2, Name: "Bel", Class: 1, Loot: []Drop{{"crown", &rate}, {"coin", nil}}},
		{ID: 5, Name: "Cid", Class: 2},
	}
	heroes[1].Stats.Speed = 1.5
	return heroes
}

// heroTable is a file that holds the heroes, opened.
func heroTable(ctx context.Context) *tcb.Table {
	file, err := tcb.Marshal(nil, someHeroes(), nil)
	if err != nil {
		log.Fatal(err)
	}
	t, err := tcb.Open(ctx, source.Memory("heroes.tcb", file), nil)
	if err != nil {
		log.Fatal(err)
	}
	return t
}

func ExampleLoad() {
	ctx := context.Background()
	t := heroTable(ctx)
	defer t.Close()
	heroes, err := tcb.Load[Hero](ctx, t)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(heroes[0].Name, heroes[0].Guild.Or("no guild"), heroes[0].Born.Year())
	fmt.Println(heroes[1].Name, heroes[1].Guild.Or("no guild"), heroes[1].Loot[0].Item, *heroes[1].Loot[0].Rate)
	// Output:
	// Ada Owls 1815
	// Bel no guild crown 0.25
}

// A struct that has a part of the columns; an int32 widens to int64, and what is no column stays empty.
func ExampleLoad_evolved() {
	ctx := context.Background()
	t := heroTable(ctx)
	defer t.Close()
	type row struct {
		Key   int64    `tcb:"1"`
		Perks []string `tcb:"30"`
	}
	rows, err := tcb.Load[row](ctx, t)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%#v\n", rows[2].Perks)
	type wrong struct {
		Name []string `tcb:"2"`
	}
	_, err = tcb.Load[wrong](ctx, t)
	fmt.Println(tcb.Check(err), err)
	// Output:
	// []string{}
	// C3 tcb: heroes.tcb: column 2 (Name): C3: the file has a column of the kind scalar, field Name is of the kind array
}

func ExampleIter() {
	ctx := context.Background()
	t := heroTable(ctx)
	defer t.Close()
	for hero, err := range tcb.Iter[Hero](ctx, t) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(hero.ID, hero.Name)
	}
	// Output:
	// 1 Ada
	// 2 Bel
	// 5 Cid
}

func ExampleOpt() {
	var guild tcb.Opt[string]
	fmt.Println(guild.Present, guild.Or("none"))
	guild = tcb.Some("Owls")
	name, ok := guild.Get()
	fmt.Println(name, ok)
	// Output:
	// false none
	// Owls true
}

func ExampleMarshal() {
	type point struct {
		X int32 `tcb:"1"`
		Y int32 `tcb:"2"`
	}
	file, err := tcb.Marshal(nil, []point{{1, 5}, {2, 5}, {3, 5}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("% x\n", file[tcb.HeaderSize:])
	// Output:
	// 06 04 02 02 01 03 00 00 00 04 02 03 02 00 00 00 02 04 06 06 0a
}

func ExampleColumnsOf() {
	columns, err := tcb.ColumnsOf(someHeroes())
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range columns {
		fmt.Println(c.Tag, c.Name, c.Type)
	}
	// Output:
	// 1 ID i32
	// 2 Name string
	// 3 Class enum
	// 4 Guild string?
	// 5 Born i64
	// 6 Stats.Speed f64
	// 7 Loot.Item string[]
	// 8 Loot.Rate f32?[]
}

func ExampleSchemaOf() {
	s, err := tcb.SchemaOf[Drop]()
	if err == nil {
		var text []byte
		text, err = s.MarshalJSON()
		fmt.Println(string(text))
	}
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// {"table":"Drop","columns":[{"tag":7,"name":"Item","type":"string"},{"tag":8,"name":"Rate","type":"f32","optional":true}]}
}

func ExampleUnique() {
	byID := tcb.Unique(someHeroes(), func(h *Hero) int32 { return h.ID })
	hero, err := byID.Get(5)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(hero.Name)
	_, err = byID.Get(6)
	fmt.Println(err)
	// Output:
	// Cid
	// tcb: no row has the key 6
}

func ExampleIndex_Build() {
	byClass := tcb.Unique(someHeroes(), func(h *Hero) Class { return h.Class })
	fmt.Println(byClass.Build())
	// Output:
	// tcb: rows 0 and 2 have the same key, 2
}

func ExampleMulti() {
	byClass := tcb.Multi(someHeroes(), func(h *Hero) Class { return h.Class })
	for _, hero := range byClass.Get(2) {
		fmt.Println(hero.Name)
	}
	// Output:
	// Ada
	// Cid
}

// A program keeps its tables, and an index of one, up to date with a folder.
func ExampleNewWatch() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file, err := tcb.Marshal(nil, someHeroes(), nil)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "heroes.tcb"), file, 0o666)
	}
	if err != nil {
		log.Fatal(err)
	}

	type game struct {
		heroes []Hero
		byID   *tcb.Index[int32, Hero]
	}
	load := func(ctx context.Context, dir string) (*game, error) {
		obj, err := source.OpenFile(filepath.Join(dir, "heroes.tcb"))
		if err != nil {
			return nil, err
		}
		defer obj.Close()
		t, err := tcb.Open(ctx, obj, nil)
		if err != nil {
			return nil, err
		}
		heroes, err := tcb.Load[Hero](ctx, t)
		if err != nil {
			return nil, err
		}
		g := &game{heroes, tcb.Unique(heroes, func(h *Hero) int32 { return h.ID })}
		return g, g.byID.Build() // a table with an id twice is not taken
	}
	w, err := tcb.NewWatch(context.Background(), dir, load, &tcb.WatchOptions{
		Report: func(err error) { log.Println("loaded anew:", err) },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()

	g := w.Snapshot() // as often as there is something to do
	fmt.Println(len(g.heroes), w.Err())
	// Output:
	// 3 <nil>
}
