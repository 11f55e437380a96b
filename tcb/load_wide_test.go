//go:build amd64 || arm64

package tcb

import (
	"context"
	"errors"
	"testing"

	"github.com/spilehq/spile/fault"
)

// The bytes of all rows do not fit into 64 bits.
func TestLoadHuge(t *testing.T) {
	type huge struct { // of which a million take 2^64 bytes
		N    int32 `tcb:"1"`
		Much [1<<44 - 4]byte
	}
	const rows = 1 << 20
	table := tableOf(t, rows, &Column{Tag: 1, Type: Type{Element: I32}, Rows: rows, Int32s: make([]int32, rows)})
	if _, err := Load[huge](context.Background(), table); !errors.Is(err, fault.Limit) {
		t.Error(err)
	}
}
