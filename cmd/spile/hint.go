package main

import (
	"errors"
	"regexp"
	"strings"

	"github.com/spilehq/spile/value"
)

// hints name the flag that helps with an error, by a pattern of its message. One is given where the verb has the flag, or
// where none is named.
var hints = []struct{ pattern, flag, text string }{
	{`nested deeper than `, "depth", "--depth sets the limit"},
	{` nested too deep`, "depth", "--depth sets the limit"},
	{`budget of \d+ bytes: `, "max-bytes", "--max-bytes sets it"},
	{`budget of \d+ requests: `, "max-requests", "--max-requests sets it"},
	{`budget of 0: `, "max-bytes", "--max-bytes or --max-requests sets it"},
	{` more bytes decoded, `, "max-decoded", "--max-decoded sets it"},
	{`; --magic names it \(offset|; --magic names it$`, "from-magic", "--from-magic, where the output has another"},
	{`a decimal comma must be declared`, "decimal-comma", "--decimal-comma does that"},
	{`which is the delimiter must be declared`, "delimiter", "--delimiter does that"},
	{`what merged cells mean must be said`, "merged", "--merged=first or --merged=fill says it"},
	{` a spreadsheet keeps 15: want the digits as text`, "long-numbers", "--long-numbers takes the number as it is"},
	{`stands for an absent value: another must be chosen`, "null", "--null chooses it"},
	{`is encrypted, and there is no key for it`, "key-file", "--key-file names one"},
	{` in one artifact and .* in another`, "keep-first", "--keep-first takes that of the earliest bucket"},
	{`want a number of 32 bits, for an enumeration$`, "schema", "--schema gives the labels of one"},
	{`read it without the sidecar`, "no-sidecar", "--no-sidecar does that"},
	{`"\*" is no index into a list, and no slice`, "", "spile query takes all items, as in '.runs[].label'"},
}

// options are those of the library that a message names, with the flags that set them. They take their place where the verb
// has them.
var options = []struct{ name, flag string }{
	{"Limits.Rows", "max-rows"},
	{"Limits.Bytes", "max-decoded"},
	{"Options.MaxShared", "max-decoded"},
	{"Options.MaxFullDownload", "allow-full-download"},
}

// advised is an error with what to do about it.
type advised struct {
	error
	text string
}

func (a advised) Unwrap() error { return a.error }

// permits name the flag for what an option of the library permits.
var permits = map[value.Permit]struct{ flag, text string }{
	value.PermitNonFinite:   {"non-finite", "--non-finite=null or string prints it"},
	value.PermitInvalidUTF8: {"invalid-utf8", "--invalid-utf8=replace prints it"},
	value.PermitKeys:        {"keys", "--keys=string or pairs prints it"},
	value.PermitDup:         {"dup", "--dup says which pair is printed"},
	value.PermitKeepDup:     {"dup", "--dup says which pair is printed"},
	value.PermitLossless:    {"lossless", "without --lossless it is told and done"},
	value.PermitCodec:       {"codec", "--codec cbor holds it"},
}

// hinted is the message of an error with the flag that helps, before its offset.
func (e *env) hinted(err error) string {
	text := message(err)
	for _, o := range options {
		if e.flags != nil && e.flags.Lookup(o.flag) != nil {
			text = strings.Replace(text, "; "+o.name+" allows ", "; --"+o.flag+" allows ", 1)
		}
	}
	with := func(help string) string {
		end := len(text)
		if i := strings.LastIndex(text, " (offset "); i >= 0 && strings.HasSuffix(text, ")") {
			end = i
		}
		return text[:end] + "; " + help + text[end:]
	}
	hint := func(flag, help string) string {
		if flag != "" && (e.flags == nil || e.flags.Lookup(flag) == nil) {
			return text
		}
		return with(help)
	}
	if a, ok := errors.AsType[advised](err); ok {
		return with(a.text)
	}
	if p, ok := errors.AsType[value.Permit](err); ok {
		help := permits[p].text
		switch {
		case p == value.PermitCodec && strings.Contains(text, " has no form in cbor"):
			help = "--codec msgpack holds it"
		case p == value.PermitKeys && strings.Contains(text, " inside a key that is written as a string"):
			help = "--keys=pairs prints it"
		}
		return hint(permits[p].flag, help)
	}
	for _, h := range hints {
		if regexp.MustCompile(h.pattern).MatchString(text) {
			return hint(h.flag, h.text)
		}
	}
	return text
}
