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
