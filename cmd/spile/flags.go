package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/value"
)

// size is the value of a flag that takes a number, of bytes mostly: 4096, 64K, 64KiB, 1.5M, 2GB.
type size int64

const unlimited size = -1

// The units of a size. A letter alone is a power of 1024, as for most tools that count memory.
var units = []struct {
	suffix string
	factor int64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12},
	{"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {"t", 1 << 40},
	{"b", 1},
}

func (s *size) Set(text string) error {
	number, factor := strings.ToLower(text), int64(1)
	for _, u := range units {
		if n, ok := strings.CutSuffix(number, u.suffix); ok {
			number, factor = n, u.factor
			break
		}
	}
	if n, err := strconv.ParseUint(number, 10, 63); err == nil && n <= uint64(math.MaxInt64/factor) {
		*s = size(int64(n) * factor)
		return nil
	}
	f, err := strconv.ParseFloat(number, 64)
	if f *= float64(factor); err != nil || factor == 1 || !(f >= 0 && f < math.MaxInt64) || strings.ContainsAny(number, "einx") {
		return fmt.Errorf("want a number of 0 or more, as 4096, 64K or 1.5GiB")
	}
	*s = size(f)
	return nil
}

func (s *size) String() string {
	if *s < 0 {
		return ""
	}
	for _, u := range []struct {
		suffix string
		shift  int
	}{{"GiB", 30}, {"MiB", 20}, {"KiB", 10}} {
		if n := int64(*s) >> u.shift; n > 0 && n<<u.shift == int64(*s) {
			return strconv.FormatInt(n, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(*s), 10)
}

func (s *size) Type() string { return "N" }

// choice is the value of a flag that takes one of some words.
type choice[T comparable] struct {
	value *T
	words []string
	means []T
}

func (c *choice[T]) Set(text string) error {
	for i, word := range c.words {
		if word == text {
			*c.value = c.means[i]
			return nil
		}
	}
	return fmt.Errorf("want %s", strings.Join(c.words, ", "))
}

func (c *choice[T]) String() string {
	for i, v := range c.means {
		if c.value != nil && v == *c.value {
			return c.words[i]
		}
	}
	return ""
}

func (c *choice[T]) choices() []string { return c.words }

func (c *choice[T]) Type() string { return strings.Join(c.words, "|") }

// magicFlag is the magic of documents. Nil means the usual one.
type magicFlag []byte

func (m *magicFlag) Set(text string) error {
	if len(text) == 0 || len(text) > msglc.MagicSize {
		return fmt.Errorf("%d bytes, want 1 to %d", len(text), msglc.MagicSize)
	}
	*m = magicFlag(text)
	return nil
}

func (m *magicFlag) String() string { return string(*m) }

func (m *magicFlag) Type() string { return "TEXT" }

// sourceFlags say how the file arguments of a verb are read.
type sourceFlags struct {
	format format
	magic  magicFlag // of documents that are read, and of those that are written
	from   magicFlag // of those that are read, where the verb has the flag and it is given
	offset size
	depth  int
	mmap   bool

	tables    *tableInFlags    // how tables are read, nil for verbs that read none
	artifacts *artifactInFlags // how series artifacts are read, nil for verbs that read none
	noSidecar bool

	lossless    bool           // set by verbs that have the flag: a JSON file whose numbers cannot be kept is an error
	invalidUTF8 value.UTF8Mode // set by verbs that print values
	keepDup     bool           // set by verbs that print values: keys that occur twice in a JSON file are for the printer to treat
}

func (f *sourceFlags) add(flags *pflag.FlagSet) {
	flags.Var(&choice[format]{&f.format, formatNames, allFormats}, "format", "the format of FILE, found from its content otherwise; tcb is a table, series an artifact")
	flags.Var(&f.magic, "magic", "the magic of documents, 1 to 30 bytes (msglc-2024)")
	flags.Var(&f.offset, "offset", "where the document starts in FILE, in bytes")
	flags.IntVar(&f.depth, "depth", value.DefaultDepth, "how deep lists, maps and tags may be nested, `N` levels, 10000 at most")
	flags.BoolVar(&f.noSidecar, "no-sidecar", false, "read a MessagePack or CBOR file without the table of contents in FILE.toc")
	flags.BoolVar(&f.mmap, "mmap", false, "map FILE into memory instead of reading it")
}

// addBytes adds, of the flags of a FILE argument, those that files of all formats have.
func (f *sourceFlags) addBytes(flags *pflag.FlagSet) {
	f.depth = value.DefaultDepth
	flags.Var(&f.offset, "offset", "where the table starts in FILE, in bytes")
	flags.BoolVar(&f.mmap, "mmap", false, "map FILE into memory instead of reading it")
}

// addTables adds the flags of verbs that read tables as well.
func (f *sourceFlags) addTables(flags *pflag.FlagSet) {
	f.tables = &tableInFlags{}
	f.tables.add(flags)
}

func (f *sourceFlags) check() error {
	if f.depth < 1 || f.depth > value.MaxDepth {
		return usagef("--depth %d, want 1 to %d", f.depth, value.MaxDepth)
	}
	return nil
}

// addFrom adds the flag of verbs that give a document a new magic.
func (f *sourceFlags) addFrom(flags *pflag.FlagSet) {
	flags.Var(&f.from, "from-magic", "the magic of the document that is read, where it is not that of --magic")
	flags.Lookup("magic").Usage = "the magic of the document that is written and, without --from-magic, of one that is read, 1 to 30 bytes (msglc-2024)"
}

// reads is the magic of documents that are read.
func (f *sourceFlags) reads() magicFlag {
	if f.from != nil {
		return f.from
	}
	return f.magic
}

func (f *sourceFlags) limits() value.Limits { return value.Limits{Depth: f.depth} }

func (f *sourceFlags) options() *msglc.Options {
	return &msglc.Options{Magic: f.reads(), Offset: int64(f.offset), Limits: f.limits()}
}

// writeFlags say what document a verb writes, and where.
type writeFlags struct {
	output    string
	codec     value.Codec
	threshold size
	trivial   size
	numeric   msglc.NumericRule
	sidecar   bool // index: the table of contents alone
	appends   bool // combine: to what is there
	anyMagic  bool // repair, salvage: whatever the magic is
}

// addOutput adds -o, and what goes with it.
func (f *writeFlags) addOutput(e *env, flags *pflag.FlagSet) {
	e.addNoOverwrite(flags)
	f.threshold, f.trivial = unlimited, unlimited
	flags.StringVarP(&f.output, "output", "o", "", "the file `OUT` to write, - for standard output; one that is there is replaced when the new one is complete")
}

// addCodec adds --codec.
func (f *writeFlags) addCodec(flags *pflag.FlagSet, text string) {
	flags.Var(&choice[value.Codec]{&f.codec, []string{"msgpack", "cbor"}, []value.Codec{value.Msgpack, value.CBOR}}, "codec", text)
}

// addTOC adds the flags, behind those of addOutput, that shape a table of contents.
func (f *writeFlags) addTOC(flags *pflag.FlagSet) {
	flags.Var(&f.threshold, "threshold", "bytes from which the children of a list or map have entries in the table of contents (8192); below 20 it lowers --trivial, too")
	flags.Var(&f.trivial, "trivial", "bytes up to which a value is worth no entry (20)")
	flags.Var(&choice[msglc.NumericRule]{
		&f.numeric, []string{"plain", "floats", "numbers"},
		[]msglc.NumericRule{msglc.PlainBlocks, msglc.FloatBlocks, msglc.FloatAndIntBlocks},
	}, "numeric-arrays", "blocks of equal counts, as the original makes them of numpy arrays, for lists of floats or of all numbers")
}

// addAnyMagic adds the flag of the verbs for damaged documents.
func (f *writeFlags) addAnyMagic(flags *pflag.FlagSet) {
	flags.BoolVar(&f.anyMagic, "any-magic", false, "FILE is a document, whatever stands where its magic should be")
}

func (f *writeFlags) check() error {
	switch {
	case f.output == "":
		return usagef("-o OUT is missing")
	case f.threshold == 0 || f.trivial == 0:
		return usagef("--threshold and --trivial want 1 or more")
	case f.trivial > 0 && f.trivial > f.thresholdOr(msglc.DefaultThreshold):
		return usagef("--trivial %d is above --threshold %d", f.trivial, f.thresholdOr(msglc.DefaultThreshold))
	}
	return nil
}

func (f *writeFlags) thresholdOr(d size) size {
	if f.threshold < 0 {
		return d
	}
	return f.threshold
}

func (f *writeFlags) options(in *sourceFlags) *msglc.WriteOptions {
	return &msglc.WriteOptions{
		Codec: f.codec, Threshold: max(0, int64(f.threshold)), Trivial: max(0, int64(f.trivial)), Magic: in.magic,
		NumericArrays: f.numeric, Limits: in.limits(),
	}
}
