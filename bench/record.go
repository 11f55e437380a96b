package main

//go:generate go run github.com/tinylib/msgp@v1.6.5 -file record.go -o record_msgp.go -io=false -tests=false -unexported

// record is one item of the mixed document: short keys over the kinds of values that records of measurements and
// services have. Peers read the tags that are theirs; the names are the same.
type record struct {
	ID      int64    `msg:"id" msgpack:"id" json:"id"`
	Name    string   `msg:"name" msgpack:"name" json:"name"`
	Host    string   `msg:"host" msgpack:"host" json:"host"`
	Active  bool     `msg:"active" msgpack:"active" json:"active"`
	Score   float64  `msg:"score" msgpack:"score" json:"score"`
	Ratio   float64  `msg:"ratio" msgpack:"ratio" json:"ratio"`
	Count   int64    `msg:"count" msgpack:"count" json:"count"`
	Delta   int64    `msg:"delta" msgpack:"delta" json:"delta"`
	Tags    []string `msg:"tags" msgpack:"tags" json:"tags"`
	Samples []int64  `msg:"samples" msgpack:"samples" json:"samples"`
	Pos     position `msg:"pos" msgpack:"pos" json:"pos"`
	Note    *string  `msg:"note" msgpack:"note" json:"note"`
}

type position struct {
	X float64 `msg:"x" msgpack:"x" json:"x"`
	Y float64 `msg:"y" msgpack:"y" json:"y"`
	Z int64   `msg:"z" msgpack:"z" json:"z"`
}

// records is the mixed document.
type records []record

//msgp:ignore narrowRecord

// narrowRecord has fewer pairs: a Go map of up to 8 is much cheaper than one of 9.
type narrowRecord struct {
	ID     int64    `msgpack:"id"`
	Name   string   `msgpack:"name"`
	Host   string   `msgpack:"host"`
	Active bool     `msgpack:"active"`
	Score  float64  `msgpack:"score"`
	Count  int64    `msgpack:"count"`
	Tags   []string `msgpack:"tags"`
	Pos    position `msgpack:"pos"`
}
