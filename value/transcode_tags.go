package value

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
	"time"
)

// tagSelfDescribed says "this is CBOR" and nothing about its content (RFC 8949 section 3.4.6).
const tagSelfDescribed = 55799

// tagHead writes a tag, or holds it until its content is read.
func (t *transcoder) tagHead() error {
	number, toMsgpack := t.s.Bits, t.to == Msgpack
	switch {
	case number == tagPosBig || number == tagNegBig,
		toMsgpack && (number == tagTimeText || number == tagTimeEpoch):
		t.held, t.tag, t.tagged = true, number, t.s.Start()
	case toMsgpack && number == tagSelfDescribed:
	case toMsgpack:
		return t.refuse("tag " + strconv.FormatUint(number, 10))
	default:
		t.out = AppendTag(t.out, t.to, number)
	}
	return nil
}

// heldTag writes the tag that is held together with its content, the token that was read. A content that makes no sense
// under its tag is left to be written as it stands, behind the tag; it is not for a copy to judge.
func (t *transcoder) heldTag() (done bool, err error) {
	t.held = false
	s := t.s
	switch {
	case (t.tag == tagPosBig || t.tag == tagNegBig) && s.Kind == Bytes:
		return true, t.bigNumber()
	case t.to == CBOR:
		t.out = AppendTag(t.out, t.to, t.tag)
		return false, nil
	case t.tag == tagTimeText && s.Kind == String:
		if at, ok := exactTime(s.Data); ok {
			t.out = appendMsgpackTime(t.out, at.Unix(), uint32(at.Nanosecond()))
			return true, nil
		}
		return false, t.refuseAt("tag 0 with "+strconv.Quote(cutText(string(s.Data)))+", not a time in UTC up to nanoseconds,", t.tagged)
	case t.tag == tagTimeEpoch:
		if sec, nsec, ok := exactEpoch(&s.Token); ok {
			t.out = appendMsgpackTime(t.out, sec, nsec)
			return true, nil
		}
		return false, t.refuseAt("tag 1 with "+s.Kind.withArticle()+", not a time of whole nanoseconds,", t.tagged)
	}
	return false, t.refuseAt("tag "+strconv.FormatUint(t.tag, 10)+" with "+s.Kind.withArticle(), t.tagged)
}

// bigNumber writes the integer of a tag 2 or 3: a plain one where 64 bits hold it (RFC 8949 section 3.4.3).
func (t *transcoder) bigNumber() (err error) {
	b := bytes.TrimLeft(t.s.Data, "\x00")
	if len(b) > 8 {
		if t.to == Msgpack {
			return t.refuseAt("an integer of "+strconv.Itoa(8*len(b))+" bits", t.tagged)
		}
		t.out = AppendBytes(AppendTag(t.out, t.to, t.tag), t.to, b)
		return nil
	}
	var word [8]byte
	copy(word[8-len(b):], b)
	n := binary.BigEndian.Uint64(word[:])
	switch {
	case t.tag == tagPosBig:
		t.out = AppendUint(t.out, t.to, n)
	case n > math.MaxInt64 && t.to == Msgpack:
		return t.refuseAt("an integer below -2^63", t.tagged)
	default:
		t.out, err = appendNint(t.out, t.to, n)
	}
	return err
}

// ext writes a msgpack ext in CBOR, which has a form for timestamps only.
func (t *transcoder) ext() (err error) {
	s := t.s
	if s.Ext != extTimestamp {
		return t.refuse("ext " + strconv.Itoa(int(s.Ext)))
	}
	at, ok := msgpackTime(s.Data)
	switch {
	case !ok:
		return t.refuse("a timestamp of wrong form")
	case at.Year() >= 0 && at.Year() <= 9999:
		t.out, err = AppendTimestamp(t.out, t.to, at)
	case at.Nanosecond() == 0:
		t.out = AppendInt(AppendTag(t.out, t.to, tagTimeEpoch), t.to, at.Unix())
	default:
		f := float64(at.Unix()) + float64(at.Nanosecond())/1e9
		sec, nsec, ok := exactEpoch(&Token{Kind: Float64, Bits: math.Float64bits(f)})
		if !ok || sec != at.Unix() || nsec != uint32(at.Nanosecond()) {
			return t.refuse("a timestamp in the year " + strconv.Itoa(at.Year()) + " with that fraction")
		}
		t.out = AppendFloat64(AppendTag(t.out, t.to, tagTimeEpoch), t.to, f)
	}
	return err
}

// exactTime reads RFC 3339 text of a time that a msgpack timestamp holds: up to nanoseconds and without an offset,
// since a timestamp has none to keep.
func exactTime(b []byte) (time.Time, bool) {
	const whole = len("2006-01-02T15:04:05")
	b = bytes.ToUpper(b) // "t" and "z" are allowed
	if len(b) <= whole {
		return time.Time{}, false
	}
	date, rest := b[:whole], b[whole:]
	for _, utc := range []string{"Z", "+00:00"} {
		fraction, ok := bytes.CutSuffix(rest, []byte(utc))
		if !ok {
			continue
		}
		at, err := time.Parse("2006-01-02T15:04:05", string(date))
		if err != nil {
			return time.Time{}, false
		}
		if len(fraction) == 0 {
			return at, true
		}
		digits := bytes.TrimRight(fraction[1:], "0")
		if fraction[0] != '.' || len(fraction) < 2 || len(digits) > 9 || len(bytes.Trim(digits, "0123456789")) != 0 {
			return time.Time{}, false
		}
		nsec, _ := strconv.Atoi((string(digits) + "000000000")[:9])
		return at.Add(time.Duration(nsec)), true
	}
	return time.Time{}, false
}

// exactEpoch reads the number of a tag 1: seconds, as whole nanoseconds.
func exactEpoch(t *Token) (sec int64, nsec uint32, ok bool) {
	switch t.Kind {
	case Uint:
		return int64(t.Bits), 0, t.Bits <= math.MaxInt64
	case Nint:
		return ^int64(t.Bits), 0, t.Bits <= math.MaxInt64
	case Float16, Float32, Float64:
		f := t.Float()
		whole := math.Floor(f)
		if !(whole >= math.MinInt64 && whole < -math.MinInt64) {
			return 0, 0, false
		}
		// A binary fraction is a whole number of 10^-9 just where it is one of 2^-9; each of these is 5^9 ns.
		parts := math.Trunc((f - whole) * (1 << 9))
		return int64(whole), uint32(parts) * 1_953_125, whole+parts/(1<<9) == f && parts < 1<<9
	}
	return 0, 0, false
}
