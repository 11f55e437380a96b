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

func TestEnds(t *testing.T) {
	ctx := context.Background()
	if head, tail := source.Ends(ctx); head != 0 || tail != 0 {
		t.Errorf("a context that says nothing says %d and %d", head, tail)
	}
	ctx = source.WithEnds(source.ForDirectory(source.WithEnds(ctx, 1, 2)), 16, 300)
	if head, tail := source.Ends(ctx); head != 16 || tail != 300 || !source.IsDirectory(ctx) {
		t.Errorf("the ends are %d and %d", head, tail)
	}
}
