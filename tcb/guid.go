package tcb

import (
	"encoding/hex"

	"github.com/spilehq/spile/fault"
)

// GUID is a UUID in the byte order of the file: that of .NET, the first three groups little endian.
type GUID [16]byte

// guidOrder says which byte of the file each byte of the text form is.
var guidOrder = [16]int{3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15}

// String is the text form, 00112233-4455-6677-8899-aabbccddeeff.
func (g GUID) String() string {
	var b [36]byte
	return string(g.append(b[:0]))
}

// Bytes are the bytes in the order of the text form, which is that of RFC 9562 and of most other systems.
func (g GUID) Bytes() (b [16]byte) {
	for i, k := range guidOrder {
		b[i] = g[k]
	}
	return b
}

func (g GUID) append(dst []byte) []byte {
	const digits = "0123456789abcdef"
	for i, x := range g.Bytes() {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		dst = append(dst, digits[x>>4], digits[x&15])
	}
	return dst
}

// ParseGUID reads the text form, with or without braces, in digits of either case.
func ParseGUID(s string) (GUID, error) {
	t := s
	if len(t) == 38 && t[0] == '{' && t[37] == '}' {
		t = t[1:37]
	}
	var g GUID
	var b [16]byte
	ok := len(t) == 36 && t[8] == '-' && t[13] == '-' && t[18] == '-' && t[23] == '-'
	if ok {
		_, err := hex.Decode(b[:], []byte(t[:8]+t[9:13]+t[14:18]+t[19:23]+t[24:]))
		ok = err == nil
	}
	if !ok {
		return g, fault.New(fault.Invalid, "tcb", "%q is no uuid; 00112233-4455-6677-8899-aabbccddeeff is one", s)
	}
	for i, k := range guidOrder {
		g[k] = b[i]
	}
	return g, nil
}
