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
type Limits struct {
	Rows  int64 // of a table; default: DefaultMaxRows
	Bytes int64 // of all columns that one read decodes; default: follows the size of the file, see DefaultMaxBytes
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
