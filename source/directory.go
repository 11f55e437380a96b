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
