package source

import "context"

// directoryKey marks contexts of reads of a directory.
type directoryKey struct{}

// ForDirectory returns a context for reads of what a file says of itself: a table of contents, a page tree,
// descriptors. A cache keeps these bytes longer than the payload, since every further read of the file wants them.
func ForDirectory(ctx context.Context) context.Context {
	if IsDirectory(ctx) {
		return ctx
	}
	return context.WithValue(ctx, directoryKey{}, true)
}

// IsDirectory reports whether ctx comes from [ForDirectory].
func IsDirectory(ctx context.Context) bool { return ctx.Value(directoryKey{}) != nil }

// upToKey marks contexts of reads that have an end.
type upToKey struct{}

// UpTo returns a context for reads that will want nothing of the object at end and behind, so that [ReadAhead] does not go
// there: a value, say, with something else behind it.
func UpTo(ctx context.Context, end int64) context.Context {
	return context.WithValue(ctx, upToKey{}, end)
}

// upTo is the end of what reads with ctx will want, false where it is not known.
func upTo(ctx context.Context) (end int64, known bool) {
	end, known = ctx.Value(upToKey{}).(int64)
	return end, known
}

// endsKey marks contexts in which objects are opened of which it is known what is read first.
type endsKey struct{}

// WithEnds returns a context for opening an object of which head bytes at its start and tail bytes at its end are read first:
// where requests take long, both are asked for at once with the opening, instead of as much as is usual.
func WithEnds(ctx context.Context, head, tail int64) context.Context {
	return context.WithValue(ctx, endsKey{}, [2]int64{head, tail})
}

// Ends are the numbers of [WithEnds], 0 where they are not known.
func Ends(ctx context.Context) (head, tail int64) {
	ends, _ := ctx.Value(endsKey{}).([2]int64)
	return ends[0], ends[1]
}
