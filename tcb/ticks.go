package tcb

import (
	"strconv"
	"strings"
	"time"

	"github.com/spilehq/spile/fault"
)

// Ticks are 100 ns. A datetime counts them from 0001-01-01T00:00:00, a timespan from zero.
const (
	TicksPerSecond = 10_000_000
	ticksPerDay    = 86400 * TicksPerSecond
	// MaxDateTime is the last tick of the year 9999.
	MaxDateTime = 3_155_378_975_999_999_999
	// UnixEpoch is the datetime 1970-01-01T00:00:00.
	UnixEpoch = 621_355_968_000_000_000
)

// TimeOf returns the time of a datetime, in UTC; the file has no zone. ok is false outside the years 1 to 9999.
func TimeOf(ticks int64) (t time.Time, ok bool) {
	if ticks < 0 || ticks > MaxDateTime {
		return time.Time{}, false
	}
	// Not by way of nanoseconds, which 64 bits hold for 292 years only.
	return time.Unix((ticks-UnixEpoch-mod(ticks-UnixEpoch, TicksPerSecond))/TicksPerSecond, mod(ticks-UnixEpoch, TicksPerSecond)*100).UTC(), true
}

func mod(a, b int64) int64 { return (a%b + b) % b }

// TicksOf returns the datetime that shows what the clock of t shows, whatever its zone. ok is false outside the years 1
// to 9999, and when t has parts of a tick.
func TicksOf(t time.Time) (ticks int64, ok bool) {
	if y := t.Year(); y < 1 || y > 9999 || t.Nanosecond()%100 != 0 {
		return 0, false
	}
	_, offset := t.Zone()
	return (t.Unix()+int64(offset))*TicksPerSecond + int64(t.Nanosecond()/100) + UnixEpoch, true
}

// SpanOf returns a timespan as a duration; ok is false beyond 292 years, which a duration does not hold.
func SpanOf(ticks int64) (d time.Duration, ok bool) {
	d = time.Duration(ticks) * 100
	return d, int64(d)/100 == ticks
}

// AppendDateTime appends a datetime as RFC 3339 without zone, the fraction as long as it needs. Ticks outside the years 1
// to 9999 are [fault.Invalid].
func AppendDateTime(dst []byte, ticks int64) ([]byte, error) {
	t, ok := TimeOf(ticks)
	if !ok {
		return dst, fault.New(fault.Invalid, "tcb", "%d ticks are no datetime, 0 to %d are", ticks, int64(MaxDateTime))
	}
	return t.AppendFormat(dst, "2006-01-02T15:04:05.9999999"), nil
}

// ParseDateTime reads a datetime as AppendDateTime writes it; a blank can stand for the T, and the time can be missing.
func ParseDateTime(s string) (ticks int64, err error) {
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02"} {
		t, err := time.Parse(layout, s) // takes a fraction too
		if err != nil {
			continue
		}
		if n, ok := TicksOf(t); ok && !strings.Contains(s, ",") {
			return n, nil
		}
	}
	return 0, fault.New(fault.Invalid, "tcb", "%q is no datetime; 2026-01-02T03:04:05.1234567 is one, without a zone", s)
}

// AppendTimeSpan appends a timespan as [-][d.]hh:mm:ss[.fffffff].
func AppendTimeSpan(dst []byte, ticks int64) []byte {
	u := uint64(ticks)
	if ticks < 0 {
		dst = append(dst, '-')
		u = -u
	}
	if days := u / ticksPerDay; days > 0 {
		dst = append(strconv.AppendUint(dst, days, 10), '.')
	}
	u %= ticksPerDay
	seconds := u / TicksPerSecond
	for i, n := range []uint64{seconds / 3600, seconds / 60 % 60, seconds % 60} {
		if i > 0 {
			dst = append(dst, ':')
		}
		dst = append(dst, byte('0'+n/10), byte('0'+n%10))
	}
	if f := u % TicksPerSecond; f > 0 {
		// 10,000,000 and more has eight digits; the first gives its place to the point.
		at := len(dst)
		dst = strconv.AppendUint(dst, TicksPerSecond+f, 10)
		dst[at] = '.'
		for dst[len(dst)-1] == '0' {
			dst = dst[:len(dst)-1]
		}
	}
	return dst
}

// ParseTimeSpan reads a timespan as AppendTimeSpan writes it.
func ParseTimeSpan(s string) (ticks int64, err error) {
	ticks, ok := parseTimeSpan(s)
	if !ok {
		return 0, fault.New(fault.Invalid, "tcb", "%q is no timespan; -1.02:03:04.5 is one: [-][d.]hh:mm:ss[.fffffff]", s)
	}
	return ticks, nil
}

func parseTimeSpan(s string) (ticks int64, ok bool) {
	rest, negative := strings.CutPrefix(s, "-")
	clock, fraction, hasFraction := strings.Cut(rest, ":") // the days end before the first colon
	days := "0"
	if d, h, ok := strings.Cut(clock, "."); ok {
		days, clock = d, h
	}
	fraction, rest = "", fraction
	clock += ":" + rest
	if !hasFraction {
		return 0, false
	}
	clock, fraction, hasFraction = strings.Cut(clock, ".")
	var parts [3]uint64
	fields := strings.Split(clock, ":")
	if len(fields) != 3 || hasFraction && (fraction == "" || len(fraction) > 7) {
		return 0, false
	}
	for i, limit := range []uint64{23, 59, 59} {
		n, err := strconv.ParseUint(fields[i], 10, 8)
		if err != nil || len(fields[i]) != 2 || n > limit {
			return 0, false
		}
		parts[i] = n
	}
	d, err := strconv.ParseUint(days, 10, 24)
	if err != nil || len(days) > 8 {
		return 0, false
	}
	f, err := strconv.ParseUint((fraction + "0000000")[:7], 10, 32)
	if err != nil {
		return 0, false
	}
	u := d*ticksPerDay + (parts[0]*3600+parts[1]*60+parts[2])*TicksPerSecond + f
	switch {
	case negative && u <= 1<<63:
		return int64(-u), true
	case !negative && u < 1<<63:
		return int64(u), true
	}
	return 0, false
}
