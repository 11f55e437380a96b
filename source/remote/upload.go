package remote

import "context"

// Entry is an object that a store lists.
type Entry struct {
	Name    string // the URL, which can be opened
	Size    int64
	Version string // as the Getter of the store gives it, "" when the list does not say
}

// Upload is one object on its way into a store, in parts, which become an object when all are there. A [Writer] calls it;
// programs have a Writer, of the package of the store. Errors of an Upload name the object. It repeats a request that
// failed in passing where the same request twice does no harm.
//
// Part and CopyPart are called by several goroutines at once, up to [UploadLimits.Parallel]; the others by one, and not
// while a part is under way.
type Upload interface {
	// Name is the URL of the object, without credentials.
	Name() string

	// Limits says what the store asks of parts.
	Limits() UploadLimits

	// Put makes an object of all its bytes, instead of everything below. It is used for objects shorter than a part.
	Put(ctx context.Context, p []byte) error

	// Begin comes once, before the first part.
	Begin(ctx context.Context) error

	// Part sends a part. Its bytes are the Writer's again when Part returns.
	Part(ctx context.Context, part Part) error

	// CopyPart makes a part of bytes that the store has already. [errors.ErrUnsupported] says that it cannot, and that
	// the caller has to read and to send them.
	CopyPart(ctx context.Context, part CopiedPart) error

	// Complete makes the object of so many parts. When the object must not exist and does, it is fault.Conflict.
	Complete(ctx context.Context, parts int) error

	// Discard removes what was sent, after Begin was called, whatever has failed; it is not called after Complete
	// succeeded. It may be called again, and finds less or nothing then.
	Discard(ctx context.Context) error

	// Remove deletes the object that Put or Complete has made. One that was replaced or removed since is left alone, as far as
	// the store can be asked for that.
	Remove(ctx context.Context) error
}

// Part is a run of bytes of an object that is being written.
type Part struct {
	Number int // from 0
	Last   bool
	Bytes  []byte
}

// CopiedPart is a part whose bytes are those of an object of the same store.
type CopiedPart struct {
	Number  int
	From    string // the URL of the object
	Version string // the version that the object must still have
	Start   int64
	Len     int64
}

// UploadLimits is what a store asks of parts.
type UploadLimits struct {
	MinPart  int64 // a part other than the last has at least so many bytes; less than 1 means 1
	MaxPart  int64 // a part has at most so many bytes; 0 means no limit
	MinCopy  int64 // a shorter run is sent rather than copied; less than MinPart means MinPart
	MaxCopy  int64 // so many bytes are copied by one request; 0: the store does not copy ranges
	MaxParts int   // 0 means no limit
	Multiple int64 // a part other than the last is a multiple of so many bytes; less than 1 means 1
	// Parallel is how many parts the store takes at once; 0 means no limit. With 1, parts come in order, but for part 0,
	// which comes at the end when it is held back.
	Parallel int
}
