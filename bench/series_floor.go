package main

import (
	"encoding/binary"
	"fmt"
	"math"
)

// The bounds beside the size of an artifact.
const (
	floorName      = "entropy of the columns"
	floorBytesName = "the same, TSIDs in bytes"
)

// floor is how many bytes a series take at least in a format that stores each column for itself, as this one does: the
// information of the TSIDs of each table, which are a set, and the entropy of every other column given the table. A writer
// that reaches it would have dictionaries and tables of codes for nothing. A format that knew how columns depend on one
// another, the region on the instance, could be below. In inBytes the TSIDs are those bytes that the format makes of them,
// in which Zstandard finds nothing to match, so that each byte takes its entropy.
func (s *seriesSet) floor() (least, inBytes float64) {
	sets, bytes, others := 0.0, 0.0, 0.0
	for rows := s.rows; len(rows) > 0; {
		n := 1
		for n < len(rows) && rows[n].Table == rows[0].Table {
			n++
		}
		table := rows[:n]
		rows = rows[n:]
		sets += setBits(n)
		bytes += entropyBits(tsidBytes(table))
		others += entropyBits(column(table, func(r *seriesRow) uint64 { return r.count }))
		for i := range s.labels {
			others += entropyBits(column(table, func(r *seriesRow) uint64 { return uint64(r.codes[i]) }))
		}
	}
	n := 8 * float64(len(s.rows))
	return (sets + others) / n, (bytes + others) / n
}

// tsidBytes are the bytes of the column of the TSIDs: their differences, as numbers of encoding 1.
func tsidBytes(rows []seriesRow) []byte {
	var p []byte
	last := uint64(0)
	for i := range rows {
		p = binary.AppendVarint(p, int64(rows[i].TSID-last))
		last = rows[i].TSID
	}
	return p
}

func column(rows []seriesRow, value func(*seriesRow) uint64) []uint64 {
	v := make([]uint64, len(rows))
	for i := range rows {
		v[i] = value(&rows[i])
	}
	return v
}

// setBits is the information of a set of n random numbers of 64 bits: the logarithm of (2^64 over n), which is that of
// 2^64n / n! where n is far below 2^32.
func setBits(n int) float64 {
	factorial, _ := math.Lgamma(float64(n) + 1)
	return 64*float64(n) - factorial/math.Ln2
}

// entropyBits is the entropy of values, times their number.
func entropyBits[T comparable](values []T) float64 {
	times := make(map[T]int)
	for _, v := range values {
		times[v]++
	}
	n, sum := float64(len(values)), 0.0
	for _, v := range values { // in their order, so that the sum is the same each time
		sum += math.Log2(n / float64(times[v]))
	}
	return sum
}

// floorRows are the size of an artifact with the bounds beside it.
func (s *seriesSet) floorRows(f *seriesFiles) ([]row, error) {
	size, err := sizeOf(f.artifact)
	if err != nil {
		return nil, err
	}
	ours := float64(size) / float64(len(s.rows))
	least, inBytes := s.floor()
	var rows []row
	for _, bound := range []struct {
		name  string
		value float64
	}{{floorName, least}, {floorBytesName, inBytes}} {
		rows = append(rows, row{
			Section: "series-build", Job: fmt.Sprintf("size of %s series of %s, zstd", count(float64(len(s.rows))), s.name),
			Ours: figure{Value: ours, Unit: bytesEach}, Peer: bound.name, Theirs: &figure{Value: bound.value, Unit: bytesEach}, Ratio: bound.value / ours,
		})
	}
	return rows, nil
}
