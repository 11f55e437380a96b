package main

//go:generate go run github.com/tinylib/msgp@v1.6.5 -file table_rows.go -o table_rows_msgp.go -io=false -tests=false -unexported

//msgp:tag json

// The rows of the tables. MessagePack has its names from the tags of JSON. Parquet is told what suits it: deltas for what
// ascends, dictionaries for the rest, but not for what is always different.

// growth is what a hero has at a level: nine columns of numbers.
type growth struct {
	ID      int32   `json:"id" parquet:"id,delta" tcb:"1"`
	Hero    int32   `json:"hero" parquet:"hero,delta" tcb:"2"`
	Level   int32   `json:"level" parquet:"level,delta" tcb:"3"`
	HP      int32   `json:"hp" parquet:"hp,dict" tcb:"4"`
	Attack  int32   `json:"attack" parquet:"attack,dict" tcb:"5"`
	Defense int32   `json:"defense" parquet:"defense,dict" tcb:"6"`
	Speed   int32   `json:"speed" parquet:"speed,dict" tcb:"7"`
	Crit    float32 `json:"crit" parquet:"crit,dict" tcb:"8"`
	Cost    int64   `json:"cost" parquet:"cost,dict" tcb:"9"`
}

// item is a thing that heroes carry.
type item struct {
	ID        int32    `json:"id" parquet:"id,delta" tcb:"1"`
	Key       string   `json:"key" parquet:"key,dict" tcb:"2"`
	Name      string   `json:"name" parquet:"name,dict" tcb:"3"`
	Kind      int32    `json:"kind" parquet:"kind,dict" tcb:"4,enum"`
	Rarity    int32    `json:"rarity" parquet:"rarity,dict" tcb:"5,enum"`
	Price     int64    `json:"price" parquet:"price,dict" tcb:"6"`
	Weight    float32  `json:"weight" parquet:"weight,dict" tcb:"7"`
	Stack     int32    `json:"stack" parquet:"stack,dict" tcb:"8"`
	Tradeable bool     `json:"tradeable" parquet:"tradeable" tcb:"9"`
	Tags      []string `json:"tags" parquet:"tags,dict" tcb:"10"`
	Icon      string   `json:"icon" parquet:"icon,dict" tcb:"11"`
	Set       *string  `json:"set" parquet:"set,dict" tcb:"12"`
}

// skill is what a hero can do.
type skill struct {
	ID       int32     `json:"id" parquet:"id,delta" tcb:"1"`
	Key      string    `json:"key" parquet:"key,dict" tcb:"2"`
	Hero     int32     `json:"hero" parquet:"hero,delta" tcb:"3"`
	Cooldown float32   `json:"cooldown" parquet:"cooldown,dict" tcb:"4"`
	Costs    []int32   `json:"costs" parquet:"costs,dict" tcb:"5"`
	Factors  []float64 `json:"factors" parquet:"factors,dict" tcb:"6"`
	Passive  bool      `json:"passive" parquet:"passive" tcb:"7"`
	Text     string    `json:"text" parquet:"text,dict" tcb:"8"`
}

// drop is a line of a loot table.
type drop struct {
	ID     int32   `json:"id" parquet:"id,delta" tcb:"1"`
	Group  int32   `json:"group" parquet:"group,delta" tcb:"2"`
	Item   int32   `json:"item" parquet:"item,dict" tcb:"3"`
	Least  int32   `json:"least" parquet:"least,dict" tcb:"4"`
	Most   int32   `json:"most" parquet:"most,dict" tcb:"5"`
	Chance float64 `json:"chance" parquet:"chance,dict" tcb:"6"`
}

// quest is something to do in a time.
type quest struct {
	ID     int32  `json:"id" parquet:"id,delta" tcb:"1"`
	Key    string `json:"key" parquet:"key,dict" tcb:"2"`
	Title  string `json:"title" parquet:"title,dict" tcb:"3"`
	Start  int64  `json:"start" parquet:"start,delta" tcb:"4,datetime"`
	End    int64  `json:"end" parquet:"end,delta" tcb:"5,datetime"`
	Next   *int32 `json:"next" parquet:"next,dict" tcb:"6"`
	Reward int32  `json:"reward" parquet:"reward,dict" tcb:"7"`
	Daily  bool   `json:"daily" parquet:"daily" tcb:"8"`
}

// sale is a row of the long table.
type sale struct {
	ID       int32   `json:"id" parquet:"id,delta" tcb:"1"`
	Time     int64   `json:"time" parquet:"time,delta" tcb:"2,datetime"`
	Player   int64   `json:"player" parquet:"player,dict" tcb:"3"`
	Item     string  `json:"item" parquet:"item,dict" tcb:"4"`
	Amount   int32   `json:"amount" parquet:"amount,dict" tcb:"5"`
	Price    float64 `json:"price" parquet:"price,dict" tcb:"6"`
	Rating   float32 `json:"rating" parquet:"rating,dict" tcb:"7"`
	Weight   float64 `json:"weight" parquet:"weight" tcb:"8"`
	Refunded bool    `json:"refunded" parquet:"refunded" tcb:"9"`
}
