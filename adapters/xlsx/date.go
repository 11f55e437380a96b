package xlsx

import (
	"math"
	"strings"

	"github.com/spilehq/spile/tcb"
	"github.com/xuri/nfp"
)

// style is what the number format of a cell makes of a number.
type style uint8

const (
	plain style = iota // a number
	clock              // hours, minutes and seconds
	day                // a date, with a time or without
)

// builtin is the style of a number format that has no text in the file.
func builtin(id int) style {
	switch {
	case id >= 14 && id <= 17, id == 22, id >= 27 && id <= 31, id == 36, id >= 50 && id <= 54, id == 57, id == 58:
		return day
	case id >= 18 && id <= 21, id >= 45 && id <= 47, id >= 32 && id <= 35, id == 55, id == 56:
		return clock
	}
	return plain
}

// maxFormat is the most bytes of a number format; spreadsheets take 255 characters.
const maxFormat = 1024

// formatStyle reads a number format, "yyyy-mm-dd" for example.
func formatStyle(format string) style {
	parser := nfp.NumberFormatParser()
	out := plain
	for _, section := range parser.Parse(format) {
		hasClock, hasMonth := false, false
		for _, t := range section.Items {
			switch t.TType {
			case nfp.TokenTypeElapsedDateTimes:
				hasClock = true
			case nfp.TokenTypeDateTimes:
				v := strings.ToLower(t.TValue)
				switch {
				case strings.Contains(v, "am") || strings.Contains(v, "a/p") || strings.ContainsAny(v, "hs"):
					hasClock = true
				case strings.HasPrefix(v, "m"):
					hasMonth = true
				default: // y, d, e, g, b, a
					return day
				}
			}
		}
		switch {
		case hasClock:
			out = clock
		case hasMonth:
			return day
		}
	}
	return out
}

const msPerDay = 86400000

// maxSerial is the day behind 9999-12-31, in the 1900 system.
const maxSerial = 2958466

// milliseconds are those of a serial number of days.
func milliseconds(serial float64) (int64, bool) {
	if math.Abs(serial) > 1e8 || serial != serial {
		return 0, false
	}
	return int64(math.Round(serial * msPerDay)), true
}

// dateTicks are the ticks of a serial number in the date system of the workbook. why is "" or says what the number is
// instead of a date.
func dateTicks(serial float64, from1904 bool) (ticks int64, why string) {
	ms, ok := milliseconds(serial)
	if !ok {
		return 0, "is outside the years of dates"
	} else if ms < 0 {
		return 0, "is before the first day of the date system"
	}
	days := ms / msPerDay
	const (
		day1899 = 693593 // 1899-12-30, in days from 0001-01-01
		day1904 = 695055 // 1904-01-01
	)
	switch {
	case from1904:
		days += day1904
	case days == 60:
		return 0, "is the 29 February 1900, which never was"
	case days == 0:
		return 0, "is a time of day without a date"
	case days < 60:
		days += day1899 + 1
	default:
		days += day1899
	}
	if days >= day1899+maxSerial {
		return 0, "is behind the year 9999"
	}
	return (days*msPerDay + ms%msPerDay) * (tcb.TicksPerSecond / 1000), ""
}
