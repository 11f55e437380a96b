package series

import (
	"encoding/hex"

	"github.com/spilehq/spile/fault"
)

// UUID is a generation, or the identifier of a source file.
type UUID [16]byte

// String is the text form in lower case.
func (u UUID) String() string {
	var b [36]byte
	hex.Encode(b[:8], u[:4])
	hex.Encode(b[9:13], u[4:6])
	hex.Encode(b[14:18], u[6:8])
	hex.Encode(b[19:23], u[8:10])
	hex.Encode(b[24:], u[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// hashUUID is a UUID of version 8, whose bytes are the maker's business, made of the first bytes of a hash.
func hashUUID(sum []byte) UUID {
	u := UUID(sum[:16])
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80
	return u
}

// ParseUUID reads the hyphenated form, in digits of either case.
func ParseUUID(s string) (u UUID, err error) {
	ok := len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-'
	if ok {
		_, err = hex.Decode(u[:], []byte(s[:8]+s[9:13]+s[14:18]+s[19:23]+s[24:]))
		ok = err == nil
	}
	if !ok {
		return UUID{}, fault.New(fault.Invalid, "series", "%q is no UUID; 6f1c1f5e-3b0a-4c52-9d6e-0a1b2c3d4e5f is one", s)
	}
	return u, nil
}
