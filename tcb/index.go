package tcb

import (
	"sync"

	"github.com/spilehq/spile/fault"
)

// Index finds the row that has a key, in a slice in which no two rows have the same. It is made when it is first asked,
// once, and is safe for concurrent use. The rows must not change their keys.
type Index[K comparable, T any] struct {
	rows  []T
	build func() (map[K]int32, error)
}

// Unique returns the index of rows by a key.
func Unique[K comparable, T any](rows []T, key func(*T) K) *Index[K, T] {
	return &Index[K, T]{rows, sync.OnceValues(func() (map[K]int32, error) {
		m := make(map[K]int32, len(rows))
		for i := range rows {
			k := key(&rows[i])
			if k != k {
				return nil, fault.New(fault.Invalid, "tcb", "the key of row %d is %v, which nothing is equal to", i, k)
			}
			if other, ok := m[k]; ok {
				return nil, fault.New(fault.Conflict, "tcb", "rows %d and %d have the same key, %v", other, i, k)
			}
			m[k] = int32(i)
		}
		return m, nil
	})}
}

// Build makes the index, when that was not done yet. Two rows with one key are [fault.Conflict], then and in every Get.
func (x *Index[K, T]) Build() error {
	_, err := x.build()
	return err
}

// Get returns the row with the key. A key that no row has is [fault.NotFound].
func (x *Index[K, T]) Get(k K) (*T, error) {
	m, err := x.build()
	if err != nil {
		return nil, err
	}
	i, ok := m[k]
	if !ok {
		return nil, fault.New(fault.NotFound, "tcb", "no row has the key %v", k)
	}
	return &x.rows[i], nil
}

// MultiIndex finds the rows that have a key. It is made when it is first asked, once, and is safe for concurrent use.
// The rows must not change their keys.
type MultiIndex[K comparable, T any] struct {
	build func() map[K][]*T
}

// Multi returns the index of rows by a key that any number of them can have.
func Multi[K comparable, T any](rows []T, key func(*T) K) *MultiIndex[K, T] {
	return &MultiIndex[K, T]{sync.OnceValue(func() map[K][]*T {
		numbers := make(map[K]int32) // of the keys, in the order in which they appear
		of := make([]int32, len(rows))
		var counts []int
		for i := range rows {
			k := key(&rows[i])
			n, ok := numbers[k]
			if !ok {
				n = int32(len(counts))
				numbers[k] = n
				counts = append(counts, 0)
			}
			of[i] = n
			counts[n]++
		}
		// One slab holds the lists of all keys, one behind the other.
		slab, at := make([]*T, len(rows)), 0
		lists := make([][]*T, len(counts))
		for n, count := range counts {
			lists[n] = slab[at : at : at+count]
			at += count
		}
		for i, n := range of {
			lists[n] = append(lists[n], &rows[i])
		}
		m := make(map[K][]*T, len(numbers))
		for k, n := range numbers {
			m[k] = lists[n]
		}
		return m
	})}
}

// Get returns the rows with the key, in their order; none when no row has it. The slice is the index's, for reading.
func (x *MultiIndex[K, T]) Get(k K) []*T { return x.build()[k] }
