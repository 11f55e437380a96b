package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// format is the format of a file.
type format uint8

const (
	anyFormat format = iota
	formatMsglc
	formatSeries
	formatTCB
	formatMsgpack
	formatCBOR
	formatJSON
)

// formatNames are the words of --format.
var (
	formatNames = []string{"msglc", "series", "tcb", "msgpack", "cbor", "json"}
	allFormats  = []format{formatMsglc, formatSeries, formatTCB, formatMsgpack, formatCBOR, formatJSON}
)

func (f format) String() string {
	if i := slices.Index(allFormats, f); i >= 0 {
		return formatNames[i]
	}
	return "unknown"
}

// codec is the codec of a plain file, 0 for the other formats.
func (f format) codec() value.Codec {
	switch f {
	case formatMsgpack:
		return value.Msgpack
	case formatCBOR:
		return value.CBOR
	}
	return 0
}

const (
	// sniffSize is what is read to tell formats with a magic, and JSON from binary.
	sniffSize = 64 << 10
	// scanSize is how far a large file is scanned to tell MessagePack from CBOR.
	scanSize = 1 << 20
)

// detect finds the format of obj from its content, in this order:
//
//   - msglc, by its magic. A file that is built like one but has another magic is refused, not guessed; so is one of the
//     two oldest releases.
//   - tcb and series, by their magic. A sidecar is refused: it says nothing without its file.
//   - JSON, when the text begins as JSON does and its first 64 KiB are JSON tokens.
//   - CBOR, when the first bytes are its self-describing tag d9d9f7.
//   - MessagePack or CBOR, whichever scans as one value that fills the file; of a file above 1 MiB the first MiB must
//     scan, without the value coming to its end. When both do, MessagePack, unless it alone has text that is not UTF-8.
//   - JSON again, for text that begins as JSON does: its reader says best where it breaks.
//
// at is where the document starts. The error for an unknown format says what was seen.
func detect(ctx context.Context, obj source.Object, at int64, magic []byte) (format, error) {
	f, err := detectMagic(ctx, obj, at, magic)
	if f == anyFormat && err == nil {
		f, err = detectPlain(ctx, obj, at)
	}
	return f, err
}

// detectMagic finds the formats that have a magic, anyFormat when there is none.
func detectMagic(ctx context.Context, obj source.Object, at int64, magic []byte) (format, error) {
	prefix, err := headOf(ctx, obj, at, msglc.PrefixSize)
	if err != nil {
		return 0, err
	}
	if len(prefix) == 0 {
		return 0, unknown(obj, at, "nothing there, the size is %d", obj.Size())
	}
	switch want := paddedMagic(magic); {
	case bytes.HasPrefix(prefix, want) || bytes.HasPrefix(want, prefix) && len(prefix) > 1:
		return formatMsglc, nil // or what was cut before its magic ends: the reader says so
	case bytes.HasPrefix(prefix, []byte(msglc.DefaultMagic)):
		return formatMsglc, nil // of an old release: the reader says so
	case bytes.HasPrefix(prefix, []byte("TCB\x00")):
		return formatTCB, nil
	case bytes.HasPrefix(prefix, []byte("GTSERIES")):
		return formatSeries, nil
	case bytes.HasPrefix(prefix, []byte(sidecarStart)):
		name := "the file beside it"
		if path, ok := strings.CutSuffix(obj.Name(), msglc.SidecarName("")); ok && path != "" {
			name = path
		}
		return 0, fault.New(fault.Invalid, "", "is a sidecar, the table of contents of another file; give %s instead", name).In(obj.Name())
	case isOtherMsglc(prefix, obj.Size()-at):
		return 0, unknown(obj, at, "an msglc file whose magic is %q, not %q; --magic names it",
			bytes.TrimLeft(prefix[:msglc.MagicSize], "\x00"), bytes.TrimLeft(want, "\x00"))
	}
	return anyFormat, nil
}

// detectPlain tells the formats that have no magic from one another.
func detectPlain(ctx context.Context, obj source.Object, at int64) (format, error) {
	size := obj.Size() - at
	head, err := headOf(ctx, obj, at, sniffSize)
	if err != nil {
		return 0, err
	}
	if isJSON(head, size) {
		return formatJSON, nil
	}
	if int64(len(head)) == size && len(bytes.Trim(head, " \t\r\n")) == 0 {
		return 0, unknown(obj, at, "blanks and nothing else")
	}
	if bytes.HasPrefix(head, []byte{0xd9, 0xd9, 0xf7}) {
		return formatCBOR, nil
	}
	if head, err = headOf(ctx, obj, at, scanSize); err != nil {
		return 0, err
	}
	utf8Msgpack, asMsgpack := scans(value.Msgpack, head, size)
	if asMsgpack == nil && utf8Msgpack {
		return formatMsgpack, nil
	}
	utf8CBOR, asCBOR := scans(value.CBOR, head, size)
	switch {
	case asCBOR == nil && (utf8CBOR || asMsgpack != nil):
		return formatCBOR, nil
	case asMsgpack == nil:
		return formatMsgpack, nil
	}
	if isBrokenJSON(head[:min(len(head), sniffSize)]) {
		return formatJSON, nil
	}
	if packed := foreign(head); packed != "" {
		return 0, unknown(obj, at, "%s", packed)
	}
	if isText(head[:min(len(head), sniffSize)]) {
		text := beginning(head)
		help := ""
		if strings.ContainsAny(text, ",;\t") && !strings.Contains(text, ", ") {
			help = "; spile table build makes a table of CSV"
		}
		return 0, unknown(obj, at, "text that is no JSON, it begins with %s%s", quoted(text), help)
	}
	return 0, unknown(obj, at, "no document, table or JSON; it begins with % x; as msgpack: %s; as cbor: %s",
		head[:min(8, len(head))], seen(asMsgpack, at), seen(asCBOR, at))
}

// foreigners are the formats of other tools that are told by how they begin, and what to do with them.
var foreigners = []struct{ start, text string }{
	{"\x1f\x8b", "compressed by gzip; gzip -dc FILE | spile VERB - reads it"},
	{"\x28\xb5\x2f\xfd", "compressed by zstd; zstd -dc FILE | spile VERB - reads it"},
	{"\xfd7zXZ\x00", "compressed by xz; xz -dc FILE | spile VERB - reads it"},
	{"BZh", "compressed by bzip2; bzip2 -dc FILE | spile VERB - reads it"},
	{"PK\x03\x04", "a zip archive; unzip -p FILE NAME | spile VERB - reads a file in it, and spile table build an XLSX workbook"},
	{"PAR1", "a Parquet file; spile series build makes an artifact of one that lists series"},
	{"ARROW1", "an Arrow file, which spile writes and does not read"},
}

// foreign says what a head is that is one of another tool's format, "" for others.
func foreign(head []byte) string {
	for _, f := range foreigners {
		if bytes.HasPrefix(head, []byte(f.start)) {
			return f.text
		}
	}
	return ""
}

// isText reports whether the head of a file is UTF-8 text without control characters, as far as it goes.
func isText(head []byte) bool {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	for range utf8.UTFMax - 1 { // it may end within a character
		if r, n := utf8.DecodeLastRune(head); r != utf8.RuneError || n != 1 {
			break
		}
		head = head[:len(head)-1]
	}
	return len(head) > 0 && utf8.Valid(head) && !bytes.ContainsFunc(head, func(r rune) bool {
		return r < ' ' && !strings.ContainsRune("\t\n\v\f\r\x1b", r) || r == 0x7f
	})
}

// beginning is what a message shows of a text: the start of its first line.
func beginning(text []byte) string {
	const most = 24
	line, _, _ := bytes.Cut(text, []byte("\n"))
	s := strings.ToValidUTF8(string(line[:min(len(line), most)]), "")
	if len(line) > most {
		s += "…"
	}
	return s
}

// seen is what a scan that started at an offset came upon.
func seen(err error, at int64) string {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err.Error()
	}
	text := newFinding(f).Msg
	if f.Offset >= 0 {
		text += fmt.Sprintf(" at %#x", at+f.Offset)
	}
	return text
}

func unknown(obj source.Object, at int64, msg string, args ...any) error {
	return fault.New(fault.Corrupt, "", "unknown format: "+msg, args...).In(obj.Name()).At(at)
}

// headOf reads up to n bytes from at on.
func headOf(ctx context.Context, obj source.Object, at int64, n int64) ([]byte, error) {
	if n = min(n, obj.Size()-at); n <= 0 {
		return nil, nil
	}
	p := make([]byte, n)
	return p, obj.ReadAt(ctx, p, at)
}

func paddedMagic(magic []byte) []byte {
	if magic == nil {
		magic = []byte(msglc.DefaultMagic)
	}
	field := make([]byte, msglc.MagicSize)
	copy(field[max(0, msglc.MagicSize-len(magic)):], magic)
	return field
}

// isOtherMsglc reports whether the prefix is that of a document with any magic: padding, text, and two numbers that fit
// into size bytes.
func isOtherMsglc(prefix []byte, size int64) bool {
	if len(prefix) < msglc.PrefixSize {
		return false
	}
	text := bytes.TrimLeft(prefix[:msglc.MagicSize], "\x00")
	if len(text) == 0 || !utf8.Valid(text) || bytes.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return false
	}
	return hasHeader(prefix, size)
}

// hasHeader reports whether two numbers that fit into size bytes stand where the header of a document has them.
func hasHeader(prefix []byte, size int64) bool {
	if len(prefix) < msglc.PrefixSize {
		return false
	}
	payload, ok := headerField(prefix[30:40])
	toc, ok2 := headerField(prefix[40:50])
	return ok && ok2 && payload <= uint64(size) && toc <= uint64(size) && msglc.PrefixSize+payload+toc <= uint64(size)
}

// headerField reads a number of the prefix, in either codec.
func headerField(field []byte) (uint64, bool) {
	codec, number := value.CBOR, field
	if field[0] == 0 {
		codec, number = value.Msgpack, bytes.TrimLeft(field, "\x00")
	}
	h, err := value.ReadHead(codec, number)
	return h.Arg, err == nil && h.Kind == value.Uint && h.Arg > 0 && len(bytes.Trim(number[h.Size:], "\x00")) == 0
}

// jsonStart returns the head of a file from the first byte of its JSON on, nil when that begins no JSON.
func jsonStart(head []byte) []byte {
	text := bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	text = bytes.TrimLeft(text, " \t\r\n")
	if len(text) == 0 || bytes.IndexByte([]byte(`{["-0123456789tfn`), text[0]) < 0 {
		return nil
	}
	return text
}

// isBrokenJSON reports whether the head of a file is text that begins as JSON does.
func isBrokenJSON(head []byte) bool {
	text := jsonStart(head)
	return text != nil && !bytes.ContainsFunc(text, func(r rune) bool {
		return r < ' ' && r != '\t' && r != '\r' && r != '\n' || r == 0x7f
	})
}

// isJSONFile reports whether the document at an offset is JSON text. It reads little of what is none.
func isJSONFile(ctx context.Context, obj source.Object, at int64) (bool, error) {
	size := obj.Size() - at
	head, err := headOf(ctx, obj, at, 64)
	if err != nil || jsonStart(head) == nil && len(bytes.Trim(head, " \t\r\n")) > 0 {
		return false, err
	}
	if head, err = headOf(ctx, obj, at, sniffSize); err != nil {
		return false, err
	}
	return isJSON(head, size), nil
}

// isJSON reports whether the head of a file of that size is JSON text.
func isJSON(head []byte, size int64) bool {
	whole := int64(len(head)) == size
	text := jsonStart(head)
	if text == nil {
		return false
	}
	tokens := json.NewDecoder(bytes.NewReader(text))
	tokens.UseNumber()
	for n := 0; ; n++ {
		_, err := tokens.Token()
		switch {
		case err == nil:
			continue
		case err == io.EOF:
			// The tokens ended with the head. A lone word of a large file may be the start of anything.
			return whole || n > 0
		case errors.Is(err, io.ErrUnexpectedEOF):
			return !whole || n > 0
		}
		return false
	}
}

// errMore ends the scan of a head that the file goes beyond.
var errMore = errors.New("more to come")

// scans returns no error when head begins one value that fills size bytes, as far as head tells, and whether all text in it
// is UTF-8.
func scans(c value.Codec, head []byte, size int64) (inUTF8 bool, err error) {
	inUTF8 = true
	s := value.NewStream(c, &headReader{head, size > int64(len(head))}, size, value.Limits{Depth: 1 << 20})
	for open := true; open; open = s.Depth() > 0 || s.Kind == value.Tag {
		if err := s.Next(); err == errMore {
			return inUTF8, nil
		} else if err == io.EOF {
			return inUTF8, io.ErrUnexpectedEOF
		} else if err != nil {
			return inUTF8, err
		}
		inUTF8 = inUTF8 && (s.Kind != value.String || utf8.Valid(s.Data))
	}
	if s.Offset() != size {
		return inUTF8, fault.New(fault.Corrupt, "", "the value ends at %d, the file at %d", s.Offset(), size)
	}
	return inUTF8, nil
}

// headReader gives the head of a file and then, when there is more of the file, errMore.
type headReader struct {
	head []byte
	more bool
}

func (r *headReader) Read(p []byte) (int, error) {
	n := copy(p, r.head)
	r.head = r.head[n:]
	switch {
	case n > 0 || len(p) == 0:
		return n, nil
	case r.more:
		return 0, errMore
	}
	return 0, io.EOF
}
