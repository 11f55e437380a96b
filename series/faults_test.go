package series

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
)

// breaking is a source whose n-th read fails, by an error or by the end of the context.
type breaking struct {
	source.Object
	left   *atomic.Int64
	cancel context.CancelFunc
}

var errDisk = errors.New("the disk is on fire")

func (b *breaking) ReadAt(ctx context.Context, p []byte, off int64) error {
	if b.left.Add(-1) < 0 {
		if b.cancel != nil {
			b.cancel()
			return fault.New(nil, "source", "").Because(ctx.Err())
		}
		return fault.New(nil, "source", "").In(b.Name()).Because(errDisk)
	}
	return b.Object.ReadAt(ctx, p, off)
}

// Whichever read fails, a query ends with that error, gives nothing that is wrong before it, and leaves no goroutine.
func TestBrokenSource(t *testing.T) {
	defer goleak.VerifyNone(t)
	for _, name := range []string{"depth-2", "parts-by-size", "many-blocks", "example-b1"} {
		v := readVector(t, filepath.Join(vectorFolder, name+".json"))
		for _, cancels := range []bool{false, true} {
			for n := int64(0); ; n++ {
				ctx, cancel := context.WithCancel(context.Background())
				var left atomic.Int64
				left.Store(n)
				open := func(ctx context.Context, name string) (source.Object, error) {
					obj, err := Folder(v.folder)(ctx, name)
					if err != nil {
						return nil, err
					}
					b := &breaking{Object: obj, left: &left}
					if cancels {
						b.cancel = cancel
					}
					return b, nil
				}
				failed := func() error {
					a, err := Open(ctx, open, &Options{CacheBytes: -1})
					if err != nil {
						return err
					}
					defer a.Close()
					i := 0
					for r, err := range a.Select(ctx, &Query{Mode: Native}) {
						if err != nil {
							return err
						}
						if !sameRecord(r, v.Records[i].record(a.Tags())) {
							t.Fatalf("%s: record %d is wrong", name, i)
						}
						i++
					}
					if i != len(v.Records) {
						t.Fatalf("%s: %d records without an error, want %d", name, i, len(v.Records))
					}
					return nil
				}()
				cancel()
				if failed == nil {
					break
				}
				want := error(errDisk)
				if cancels {
					want = context.Canceled
				}
				if !errors.Is(failed, want) {
					t.Fatalf("%s, read %d: %v", name, n, failed)
				}
				if n > 10_000 {
					t.Fatal("no end")
				}
			}
		}
	}
}

// A part that is shorter than its manifest says, or changes, is no part of the artifact.
func TestShortPart(t *testing.T) {
	v := readVector(t, filepath.Join(vectorFolder, "one-block.json"))
	open := func(ctx context.Context, name string) (source.Object, error) {
		obj, err := Folder(v.folder)(ctx, name)
		if err != nil || name == ManifestName {
			return obj, err
		}
		return source.Section(obj, 0, obj.Size()-1)
	}
	a, err := Open(context.Background(), open, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Count(context.Background(), &Query{}); Check(err) != 16 {
		t.Errorf("%v, want check 16", err)
	}
}
