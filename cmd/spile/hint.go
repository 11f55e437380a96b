package main

import (
	"regexp"
	"strings"
)

// hints name the flag that helps with an error, by a pattern of its message. One is given where the verb has the flag.
var hints = []struct{ pattern, flag, text string }{
	{` has no JSON form`, "non-finite", "--non-finite=null or string prints it"},
	{`JSON has string keys only`, "keys", "--keys=string or pairs prints it"},
	{` occurs twice in one `, "dup", "--dup says which pair is printed"},
	{` is not valid UTF-8 \(byte `, "invalid-utf8", "--invalid-utf8=replace prints it"},
	{`, msgpack holds -2\^63 `, "codec", "--codec cbor holds it"},
	{` has no form in msgpack`, "codec", "--codec cbor holds it"},
	{`, and nothing may be lost`, "lossless", "without --lossless it is told and done"},
	{`nested deeper than `, "depth", "--depth sets the limit"},
	{` nested too deep`, "depth", "--depth sets the limit"},
	{`budget of \d+ bytes: `, "max-bytes", "--max-bytes sets it"},
	{`budget of \d+ requests: `, "max-requests", "--max-requests sets it"},
	{`budget of 0: `, "max-bytes", "--max-bytes or --max-requests sets it"},
	{` more bytes decoded, `, "max-decode", "--max-decode sets it"},
}

// hinted is the message of an error with the flag that helps, before its offset.
func (e *env) hinted(err error) string {
	text := message(err)
	for _, h := range hints {
		if e.flags == nil || e.flags.Lookup(h.flag) == nil || !regexp.MustCompile(h.pattern).MatchString(text) {
			continue
		}
		end := len(text)
		if i := strings.LastIndex(text, " (offset "); i >= 0 && strings.HasSuffix(text, ")") {
			end = i
		}
		return text[:end] + "; " + h.text + text[end:]
	}
	return text
}
