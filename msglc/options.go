package msglc

import (
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/value"
)

// The defaults of the two sizes that shape a table of contents.
const (
	DefaultThreshold = 8192
	DefaultTrivial   = 20
)

// NumericRule says how arrays of numbers get their blocks (docs/format/msglc.md, "Numeric arrays").
type NumericRule uint8

// The rules.
const (
	// PlainBlocks closes a block when its bytes reach the threshold, for every array. It is the default.
	PlainBlocks NumericRule = iota
	// FloatBlocks gives arrays of floats of one encoded size blocks of equal counts.
	FloatBlocks
	// FloatAndIntBlocks does so for arrays of integers of one encoded size too.
	FloatAndIntBlocks
)

// WriteOptions are the options of everything that writes an archive. Nil and the zero value mean the defaults.
type WriteOptions struct {
	Codec         value.Codec // 0: Msgpack
	Threshold     int64       // T in bytes, 0: DefaultThreshold
	Trivial       int64       // R in bytes, 0: DefaultTrivial or the threshold, the lesser; above it, it raises the threshold
	Magic         []byte      // 1 to 30 bytes, nil: DefaultMagic
	AnyMagic      bool        // for Repair and Salvage: the object is an archive, whatever stands where its magic should be
	NumericArrays NumericRule
	Limits        value.Limits
	// TempDir is where a table of contents that is too long for memory is kept while it is made; "": os.TempDir.
	TempDir string
	// Progress, when set, is told the number of input bytes that are done, now and then, from the writing goroutine.
	Progress func(done int64)
}

// CombineOptions are the options of [Combine] and [Append]. Nil and the zero value mean the defaults: a list.
type CombineOptions struct {
	WriteOptions
	Named bool // the parts are a map by their names, else a list
}

func (o *CombineOptions) write() *WriteOptions {
	if o == nil {
		return nil
	}
	return &o.WriteOptions
}

func (o *CombineOptions) named() bool { return o != nil && o.Named }

// writeSettings are validated options.
type writeSettings struct {
	codec              value.Codec
	threshold, trivial int64
	magic              [MagicSize]byte
	anyMagic           bool
	numeric            NumericRule
	limits             value.Limits
	tempDir            string
	progress           func(int64)
}

func (o *WriteOptions) settings() (s writeSettings, err error) {
	if o == nil {
		o = &WriteOptions{}
	}
	s = writeSettings{
		codec: o.Codec, anyMagic: o.AnyMagic, threshold: o.Threshold, trivial: o.Trivial, numeric: o.NumericArrays, limits: o.Limits,
		tempDir: o.TempDir, progress: o.Progress,
	}
	if s.magic, err = padMagic(o.Magic); err != nil {
		return s, err
	}
	if s.codec == 0 {
		s.codec = value.Msgpack
	}
	if s.codec != value.Msgpack && s.codec != value.CBOR {
		return s, fault.New(fault.Invalid, "msglc", "unknown codec %d", o.Codec)
	}
	if s.threshold == 0 {
		s.threshold = DefaultThreshold
	}
	if s.trivial == 0 {
		s.trivial = min(DefaultTrivial, s.threshold)
	}
	if s.threshold < 1 || s.trivial < 1 {
		return s, fault.New(fault.Invalid, "msglc", "threshold %d and trivial size %d, both need 1 or more", o.Threshold, o.Trivial)
	}
	// As in the original, a trivial size above the threshold raises it.
	s.threshold = max(s.threshold, s.trivial)
	if s.numeric > FloatAndIntBlocks {
		return s, fault.New(fault.Invalid, "msglc", "unknown rule %d for numeric arrays", s.numeric)
	}
	return s, nil
}
