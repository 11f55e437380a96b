package series

// outColumn is a tag as records show it: of each row that is given the number of its value. That of 0 is null.
type outColumn struct {
	name   string
	values []string
	codes  []uint32
}

// span gives the rows [from, to) of the column.
func (d *dict) span(from, to int) (values []string, codes []uint32) {
	codes = make([]uint32, to-from)
	switch {
	case d.codes.narrow != nil:
		widen(codes, d.codes.narrow[from:to])
	case d.codes.medium != nil:
		widen(codes, d.codes.medium[from:to])
	default:
		copy(codes, d.codes.wide[from:to])
	}
	return d.values(), codes
}

func widen[C code](out []uint32, codes []C) {
	for i, c := range codes {
		out[i] = uint32(c)
	}
}

// pick gives some rows of the column.
func (d *dict) pick(rows []int) (values []string, codes []uint32) {
	codes = make([]uint32, len(rows))
	switch {
	case d.codes.narrow != nil:
		pickCodes(codes, d.codes.narrow, rows)
	case d.codes.medium != nil:
		pickCodes(codes, d.codes.medium, rows)
	default:
		pickCodes(codes, d.codes.wide, rows)
	}
	if d.len() <= len(rows) {
		return d.values(), codes
	}
	// The texts of these rows alone, one behind the other, so that who keeps them does not keep the whole dictionary; which
	// takes less, where a long text is that of many rows.
	size := 0
	for _, code := range codes {
		if size += len(d.value(code)); size > len(d.text) {
			return d.values(), codes
		}
	}
	text := make([]byte, 0, size)
	for _, code := range codes {
		text = append(text, d.value(code)...)
	}
	all, from := string(text), 0
	values = make([]string, 1, 1+len(codes))
	for i, code := range codes {
		if code == 0 {
			continue
		}
		end := from + len(d.value(code))
		codes[i] = uint32(len(values))
		values = append(values, all[from:end])
		from = end
	}
	return values, codes
}

func pickCodes[C code](out []uint32, codes []C, rows []int) {
	for i, k := range rows {
		out[i] = uint32(codes[k])
	}
}

// labelRoom hands out memory for the labels of records, a stretch for some of them.
type labelRoom struct{ free []Label }

// labelRoomSize is the most labels of a stretch: who keeps one record keeps the stretch.
const labelRoomSize = 256

// labels are those of the i-th of the rows that are given, left of which are to come, in a mode: that of Prometheus leaves
// empty ones out.
func (room *labelRoom) labels(out []outColumn, i, left int, mode Mode) []Label {
	if cap(room.free)-len(room.free) < len(out) {
		room.free = make([]Label, 0, max(len(out), min(labelRoomSize, left*len(out))))
	}
	from := len(room.free)
	to := room.free
	for c := range out {
		o := &out[c]
		code := o.codes[i]
		if code == 0 || mode == Prom && o.values[code] == "" {
			continue
		}
		to = append(to, Label{o.name, o.values[code]})
	}
	room.free = to
	return to[from:len(to):len(to)]
}
