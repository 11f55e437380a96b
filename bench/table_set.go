package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// A set of tables like those of a game: one long table of growth values, 70 others of items, skills, drops and quests,
// 109,000 rows in all.
const (
	growthRows  = 95_490
	otherTables = 70
	otherRows   = 13_510
	levels      = 90 // rows of growth that a hero has
)

// longRows is the length of the one long table.
const longRows = 5_000_000

// gameTable is a table as a slice of structs.
type gameTable struct {
	name  string
	shape *shape
	rows  any
}

// tableSet makes the tables of a game, the long one with as many rows of growth. The same size gives the same tables.
func tableSet(growths int) []gameTable {
	random := rand.New(rand.NewPCG(71, 109))
	v := newVocabulary(random)
	set := []gameTable{{"growth", growthShape, makeRows(growths, func(i int) growth { return growthRow(random, i) })}}
	left := otherRows
	for k := range otherTables {
		// Most tables are short, some have many times as many rows; together they have otherRows.
		n := left / (otherTables - k)
		if k < otherTables-1 {
			n = min(max(5, int(float64(n)*math.Exp(random.NormFloat64()*0.6-0.2))), left-5*(otherTables-k-1))
		}
		left -= n
		name := fmt.Sprintf("table_%02d", k+1)
		switch k % 4 {
		case 0:
			set = append(set, gameTable{name, itemShape, makeRows(n, func(i int) item { return itemRow(random, v, i) })})
		case 1:
			set = append(set, gameTable{name, skillShape, makeRows(n, func(i int) skill { return skillRow(random, v, i) })})
		case 2:
			set = append(set, gameTable{name, dropShape, makeRows(n, func(i int) drop { return dropRow(random, i) })})
		case 3:
			set = append(set, gameTable{name, questShape, makeRows(n, func(i int) quest { return questRow(random, v, i) })})
		}
	}
	return set
}

// longTable makes the long table with n rows.
func longTable(n int) gameTable {
	s := newSales()
	return gameTable{"sales", saleShape, makeRows(n, func(int) sale { return s.next() })}
}

func makeRows[T any](n int, row func(i int) T) []T {
	rows := make([]T, n)
	for i := range rows {
		rows[i] = row(i)
	}
	return rows
}

func growthRow(random *rand.Rand, i int) growth {
	hero, level := int32(i/levels+1), int32(i%levels+1)
	curve := math.Pow(float64(level), 1.3)
	of := func(base, step, jitter int32) int32 {
		return base + hero*7%40 + int32(curve*float64(step+hero%5)) + random.Int32N(jitter)
	}
	return growth{
		ID: hero*100 + level, Hero: hero, Level: level,
		HP: of(120, 31, 9), Attack: of(14, 5, 3), Defense: of(9, 4, 3), Speed: 90 + hero%30 + level/10,
		Crit: float32(5+hero%7) + float32(level)/8, Cost: int64(curve*curve) * 25,
	}
}

// vocabulary is what names are made of.
type vocabulary struct{ nouns, adjectives []string }

func newVocabulary(random *rand.Rand) *vocabulary {
	const consonants, vowels = "bdfgklmnprstv", "aeiou"
	make := func(syllables int) string {
		var b strings.Builder
		for range syllables {
			b.WriteByte(consonants[random.IntN(len(consonants))])
			b.WriteByte(vowels[random.IntN(len(vowels))])
		}
		return b.String() + string(consonants[random.IntN(len(consonants))])
	}
	w := &vocabulary{}
	for range 200 {
		w.nouns = append(w.nouns, make(2+random.IntN(2)))
		w.adjectives = append(w.adjectives, make(1+random.IntN(2)))
	}
	return w
}

func (w *vocabulary) noun(random *rand.Rand) string {
	// Some are far more common than others.
	return w.nouns[int(float64(len(w.nouns))*math.Pow(random.Float64(), 2))]
}

func (w *vocabulary) adjective(random *rand.Rand) string {
	return w.adjectives[random.IntN(len(w.adjectives))]
}

func (w *vocabulary) sentence(random *rand.Rand) string {
	text := make([]string, 6+random.IntN(15))
	for i := range text {
		text[i] = w.noun(random)
	}
	return strings.Join(text, " ") + "."
}

var itemKinds = []string{"weapon", "armor", "potion", "scroll", "material", "quest"}

func itemRow(random *rand.Rand, w *vocabulary, i int) item {
	kind := random.IntN(len(itemKinds))
	noun := w.noun(random)
	r := item{
		ID: int32(10_000 + i), Key: fmt.Sprintf("Item_%s_%03d", itemKinds[kind], i), Name: w.adjective(random) + " " + noun,
		Kind: int32(kind), Rarity: int32(math.Pow(random.Float64(), 3) * 5), Price: int64(random.IntN(400)) * 25,
		Weight: float32(random.IntN(200)) / 4, Stack: []int32{1, 1, 20, 99}[random.IntN(4)], Tradeable: random.IntN(5) > 0,
		Tags: []string{itemKinds[kind]}, Icon: fmt.Sprintf("ui/icons/%s/%s_%02d.png", itemKinds[kind], noun, i%40),
	}
	for range random.IntN(3) {
		r.Tags = append(r.Tags, w.nouns[random.IntN(20)])
	}
	if random.IntN(4) == 0 {
		set := "Set_" + w.nouns[random.IntN(12)]
		r.Set = &set
	}
	return r
}

func skillRow(random *rand.Rand, w *vocabulary, i int) skill {
	r := skill{
		ID: int32(i + 1), Key: fmt.Sprintf("Skill_Hero%03d_%02d", i/6+1, i%6+1), Hero: int32(i/6 + 1), Cooldown: float32(random.IntN(60)) / 2,
		Passive: random.IntN(6) == 0, Text: w.sentence(random),
	}
	for k := range 1 + random.IntN(9) {
		r.Costs = append(r.Costs, int32(10+5*k))
		r.Factors = append(r.Factors, 1+float64(random.IntN(30))/20)
	}
	return r
}

func dropRow(random *rand.Rand, i int) drop {
	least := 1 + random.Int32N(3)
	return drop{
		ID: int32(i + 1), Group: int32(i/8 + 1), Item: 10_000 + random.Int32N(600), Least: least, Most: least + random.Int32N(5),
		Chance: float64(1+random.IntN(1000)) / 1000,
	}
}

// day is a day in ticks, and epoch 2026-01-01.
const (
	day   = 24 * 3600 * 10_000_000
	epoch = 739_617 * day
)

func questRow(random *rand.Rand, w *vocabulary, i int) quest {
	start := epoch + int64(random.IntN(300))*day
	r := quest{
		ID: int32(i + 1), Key: fmt.Sprintf("Quest_Chapter%02d_%03d", i/20+1, i%20+1), Title: w.adjective(random) + " " + w.noun(random),
		Start: start, End: start + int64(1+random.IntN(30))*day, Reward: 10_000 + random.Int32N(600), Daily: random.IntN(8) == 0,
	}
	if i%20 < 19 {
		next := int32(i + 2)
		r.Next = &next
	}
	return r
}

// sales makes the rows of the long table, one after another.
type sales struct {
	random *rand.Rand
	items  []string
	made   int32
	time   int64
}

func newSales() *sales {
	s := &sales{random: rand.New(rand.NewPCG(5, 6)), time: epoch}
	w := newVocabulary(s.random)
	for i := range 2000 {
		s.items = append(s.items, fmt.Sprintf("Item_%s_%s_%04d", w.adjective(s.random), w.noun(s.random), i))
	}
	return s
}

func (s *sales) next() sale {
	r := s.random
	s.made++
	s.time += r.Int64N(40_000_000)
	return sale{
		ID: s.made, Time: s.time, Player: 1_000_000_000_000 + r.Int64N(200_000), Item: s.items[int(2000*math.Pow(r.Float64(), 2))],
		Amount: 1 + r.Int32N(20), Price: float64(r.Int32N(50_000)) / 100, Rating: float32(r.Int32N(51)) / 10, Weight: r.Float64() * 100,
		Refunded: r.IntN(50) == 0,
	}
}
