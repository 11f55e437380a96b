package tcb

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"

	"golang.org/x/crypto/chacha20"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/wire"
)

// KeySize is the length of both keys in bytes.
const KeySize = 32

const macSize = 16

// Keys are the keys of a file. One of length 0 is none.
type Keys struct {
	Encryption []byte // of ChaCha20
	MAC        []byte // of HMAC-SHA-256
}

// check refuses keys that a writer cannot use.
func (k Keys) check() error {
	for _, key := range []struct {
		name string
		key  []byte
	}{{"encryption", k.Encryption}, {"MAC", k.MAC}} {
		if n := len(key.key); n != 0 && n != KeySize {
			return fault.New(fault.Invalid, "tcb", "the %s key has %d bytes, it needs %d", key.name, n, KeySize)
		}
	}
	if len(k.MAC) > 0 && hmac.Equal(k.Encryption, k.MAC) {
		return fault.New(fault.Invalid, "tcb", "the encryption key and the MAC key are the same, they have to differ")
	}
	return nil
}

// Seal returns a copy of a plain file that is encrypted and signed, as far as there are keys. The same file and keys give
// the same bytes. A file that is no table, or is encrypted or signed already, is refused. Counts in the descriptors
// ([Table.HasCounts]) are left out.
func Seal(file []byte, k Keys) ([]byte, error) {
	if err := k.check(); err != nil {
		return nil, err
	}
	if len(file) < HeaderSize {
		return nil, tooShort(int64(len(file)))
	}
	if err := checkHeader(file); err != nil {
		return nil, err
	}
	if !isZero(file[macAt:keyCheckAt]) {
		return nil, fault.New(fault.Conflict, "tcb", "is signed already").At(macAt)
	}
	out, err := withoutCounts(bytes.Clone(file))
	if err != nil {
		return nil, err
	}
	// What a reader of a plain file does not look at would be read, or signed.
	clear(out[cipherAt:macAt])
	copy(out[keyCheckAt:], magic)
	return out, seal(out, k)
}

// withoutCounts returns a plain file as it is or, when its descriptors have counts, which nobody writes, one that has none.
// It refuses what is no table.
func withoutCounts(file []byte) ([]byte, error) {
	d, err := parseDirectory(file, int64(len(file)))
	if err != nil || d.form == plainForm {
		return file, err
	}
	out := make([]byte, HeaderSize, len(file))
	copy(out, file)
	out = wire.AppendVarint32(out, int32(d.rows))
	out = wire.AppendVarint32(out, int32(len(d.columns)))
	for _, c := range d.columns {
		out = appendDescriptor(out, c)
	}
	for _, c := range d.columns {
		out = append(out, file[c.Offset:c.Offset+c.Size]...)
	}
	return out, nil
}

// Unseal returns a plain copy of a file: the MAC is checked when there is a key for it, and taken off. Counts in the
// descriptors ([Table.HasCounts]) are left out.
func Unseal(file []byte, o *Options) ([]byte, error) {
	if o == nil {
		o = &Options{}
	}
	out := bytes.Clone(file)
	if err := open(out, o.Keys, o.SkipMAC); err != nil {
		return nil, err
	}
	if err := checkHeader(out); err != nil {
		return nil, err
	}
	clear(out[macAt:keyCheckAt])
	return withoutCounts(out)
}

// seal encrypts and signs a plain file in place, as far as there are keys.
func seal(file []byte, k Keys) error {
	if len(k.Encryption) > 0 {
		sum := sha256.Sum256(file[keyCheckAt:])
		copy(file[nonceAt:macAt], sum[:])
		file[flagsAt] |= flagEncrypted
		file[cipherAt] = chaCha20
		if err := xorKeyStream(file, k.Encryption); err != nil {
			return err
		}
	}
	if len(k.MAC) > 0 {
		copy(file[macAt:keyCheckAt], tag(file, k.MAC))
	}
	return nil
}

// xorKeyStream encrypts or decrypts the file from the key check on, with the nonce in it.
func xorKeyStream(file, key []byte) error {
	c, err := chacha20.NewUnauthenticatedCipher(key, file[nonceAt:macAt])
	if err != nil {
		return fault.New(fault.Invalid, "tcb", "").Because(err)
	}
	c.XORKeyStream(file[keyCheckAt:], file[keyCheckAt:])
	return nil
}

// tag is the MAC of the file: all of it but the tag itself.
func tag(file, key []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(file[:macAt])
	h.Write(file[keyCheckAt:])
	return h.Sum(nil)[:macSize]
}

// open checks the MAC of a file and decrypts it, in place; file is the caller's own copy. It does not look at the version
// (docs/format/tcb.md, "Opening").
func open(file []byte, k Keys, skipMAC bool) error {
	if len(file) < HeaderSize {
		return tooShort(int64(len(file)))
	}
	if string(file[:4]) != magic {
		return failed("O2", "begins with % x, a TCB file with % x", file[:4], magic).At(0)
	}
	if len(k.MAC) > 0 && !skipMAC {
		if err := checkMAC(file, k.MAC); err != nil {
			return err
		}
	}
	if file[flagsAt]&flagEncrypted == 0 {
		return nil
	}
	if c := file[cipherAt]; c != chaCha20 {
		return failed("O6", "is encrypted with the cipher %d, %d is known", c, chaCha20).At(cipherAt)
	}
	if n := len(k.Encryption); n != KeySize {
		if n == 0 {
			return failed("O7", "is encrypted, and there is no key for it").At(flagsAt)
		}
		return failed("O7", "is encrypted, and the key has %d bytes, it needs %d", n, KeySize).At(flagsAt)
	}
	if err := xorKeyStream(file, k.Encryption); err != nil {
		return err
	}
	if string(file[keyCheckAt:HeaderSize]) != magic {
		return failed("O8", "is encrypted with another key").At(keyCheckAt)
	}
	file[flagsAt] &^= flagEncrypted
	clear(file[cipherAt:macAt])
	return nil
}

func checkMAC(file, key []byte) error {
	if len(key) != KeySize {
		return failed("O3", "the MAC key has %d bytes, it needs %d", len(key), KeySize)
	}
	mac := file[macAt:keyCheckAt]
	if isZero(mac) {
		return failed("O4", "carries no MAC, and a MAC key demands one").At(macAt)
	}
	if !hmac.Equal(mac, tag(file, key)) {
		return failed("O5", "the MAC does not match: the file was changed, or signed with another key").At(macAt)
	}
	return nil
}

func tooShort(size int64) error {
	return failed("O1", "%d bytes, the header alone has %d", size, HeaderSize).At(size)
}

func isZero(p []byte) bool { return len(bytes.TrimLeft(p, "\x00")) == 0 }
