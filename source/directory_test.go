package source_test

import (
	"context"
	"testing"

	"github.com/spilehq/spile/source"
)

func TestForDirectory(t *testing.T) {
	ctx := context.Background()
	if source.IsDirectory(ctx) {
		t.Error("a context is for directories that was not marked")
	}
	marked := source.ForDirectory(ctx)
	if !source.IsDirectory(marked) || source.ForDirectory(marked) != marked {
		t.Error("a marked context is not marked, or marked twice")
	}
}
