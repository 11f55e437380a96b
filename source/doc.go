// Package source is where bytes come from. It knows nothing of what they mean.
//
// An [Object] is one immutable sequence of bytes with a name, a size and a version: a file ([OpenFile], [OpenMmap]),
// a buffer ([Memory]), any [io.ReaderAt] ([ReaderAt]), standard input ([Spool]), or a window of another object
// ([Section]). A read gives all the bytes asked for or an error, never a part.
//
// A [Range] is a run of bytes that a caller wants; a [Request] is one read of the source. What a request costs differs
// between sources, so each object states its [Cost]: how many bytes are as dear as a request, and how many requests go
// at once. [Plan] turns ranges into few requests, without I/O; [Fetch] makes a plan and runs it.
//
// A version is pinned when bytes of another version cannot be returned: a file that is replaced, removed, truncated or
// modified while it is open gives [fault.Changed]. [OpenFile] and [OpenMmap] pin; [Pinned] does it for other sources.
//
// A [Meter] counts what is asked of the objects it wraps, gives the [Receipt], and refuses the read that would pass a
// budget before it is made.
//
// An [AtomicFile] is the way out: an output file that appears under its name complete, or not at all.
//
// Objects and meters are safe for concurrent use. Readers made by [NewReader] and atomic files are not.
//
// Errors are of type [*fault.Error]. One without a class is a failure of the system below, such as a disk error or a
// missing permission, or the end of the context; it wraps the cause, so that [errors.Is] finds [context.Canceled] or
// [io/fs.ErrPermission].
package source
