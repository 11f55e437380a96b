package tcb

// The defaults of Limits.
const (
	DefaultMaxRows = 1 << 26
	// DefaultMaxBytes and DefaultExpansion bound what one read decodes: a file of n bytes may become DefaultMaxBytes +
	// n × DefaultExpansion bytes of columns. A run of three bytes can stand for any number of rows, so without a bound a
	// file of 60 bytes takes all memory there is. Tables of games grow 3 to 30 times.
	DefaultMaxBytes  = 64 << 20
	DefaultExpansion = 256
)

// Limits bounds what a reader allocates for a file that it does not trust. A field of 0 is its default.
//
// Rows is looked at before a block is fetched: of a table with more rows [Open] gives the descriptors and nothing gives
// values. Bytes counts what is decoded, before it is allocated; the blocks as they are fetched, which are bytes of the
// file, come on top, and so does what [Open] holds of the descriptors.
type Limits struct {
	Rows  int64 // of a table; default: DefaultMaxRows
	Bytes int64 // of all columns that one read decodes, and in Load of the rows too; default: follows the size of the file, see DefaultMaxBytes
}

func (l Limits) withDefaults(size int64) Limits {
	if l.Rows <= 0 {
		l.Rows = DefaultMaxRows
	}
	if l.Bytes <= 0 {
		l.Bytes = DefaultMaxBytes + size*DefaultExpansion
	}
	return l
}
