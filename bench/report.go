package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
)

// row is a line of a table: what Spile needs for a job, and one peer or a bound beside it.
type row struct {
	Section string  `json:"section"`
	Job     string  `json:"job"`
	Ours    figure  `json:"ours"`
	Peer    string  `json:"peer,omitempty"`
	Theirs  *figure `json:"theirs,omitempty"`
	Ratio   float64 `json:"ratio,omitempty"` // theirs / ours, for times and bytes; 0: none
	Target  string  `json:"target,omitempty"`
	Met     *bool   `json:"met,omitempty"`
	Note    string  `json:"note,omitempty"`
}

// figure is a number with its unit, and what else was measured on the way.
type figure struct {
	Value  float64 `json:"value"`
	Unit   unit    `json:"unit"`
	Spread float64 `json:"spread,omitempty"`

	Throughput float64  `json:"bytes_per_second,omitempty"`
	Allocs     *float64 `json:"allocs,omitempty"`
	BytesRead  float64  `json:"bytes_read,omitempty"`
	Requests   float64  `json:"requests,omitempty"`
}

type unit string

const (
	seconds   unit = "s"
	memory    unit = "B"
	perSecond unit = "1/s"
	share     unit = "%"
	bytesEach unit = "B each"
	kibibytes unit = "KiB"
)

func (f figure) String() string {
	switch f.Unit {
	case seconds:
		s := duration(f.Value)
		if f.Throughput > 0 {
			s += ", " + bytesText(f.Throughput) + "/s"
		}
		return s
	case memory:
		return significant(f.Value/(1<<20)) + " MiB"
	case perSecond:
		return count(f.Value) + "/s"
	case kibibytes:
		return significant(f.Value) + " KiB"
	case bytesEach:
		return significant(f.Value) + " B"
	case share:
		return fmt.Sprintf("%.2f %%", f.Value)
	}
	return fmt.Sprint(f.Value)
}

// three digits are more than the noise leaves.
func duration(s float64) string {
	switch a := max(s, -s); {
	case a >= 1:
		return fmt.Sprintf("%.3g s", s)
	case a >= 1e-3:
		return fmt.Sprintf("%.3g ms", s*1e3)
	case a >= 1e-6:
		return fmt.Sprintf("%.3g µs", s*1e6)
	}
	return fmt.Sprintf("%.3g ns", s*1e9)
}

func bytesText(b float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}} {
		if b >= u.size {
			return significant(b/u.size) + " " + u.name
		}
	}
	return fmt.Sprintf("%.0f B", b)
}

func count(n float64) string {
	switch {
	case n >= 1e6:
		return significant(n/1e6) + " M"
	case n >= 1e4:
		return significant(n/1e3) + " k"
	}
	return fmt.Sprintf("%.0f", n)
}

// significant is %.3g without its exponents.
func significant(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

func (r *row) ratio() string {
	if r.Ratio == 0 {
		return ""
	}
	return significant(r.Ratio) + " x"
}

func (r *row) verdict() string {
	switch {
	case r.Met == nil:
		return ""
	case *r.Met:
		return "met"
	}
	return "missed"
}

// atLeast and atMost judge a row.
func (r *row) atLeast(value, target float64, text string) {
	met := value >= target
	r.Target, r.Met = "≥ "+text, &met
}

func (r *row) atMost(value, target float64, text string) {
	met := value <= target
	r.Target, r.Met = "≤ "+text, &met
}

// rows makes the lines of a job that was measured.
func (j *job) rows(m []measurement) []row {
	figures := make([]figure, len(m))
	for i := range m {
		figures[i] = figure{Value: m[i].Seconds, Unit: seconds, Spread: m[i].Spread, Allocs: &m[i].Allocs, BytesRead: m[i].BytesRead, Requests: m[i].Requests}
		if j.bytes > 0 {
			figures[i].Throughput = float64(j.bytes) / m[i].Seconds
		}
	}
	var list []row
	if j.throughput > 0 || j.seconds > 0 || len(j.peers) == 0 {
		r := row{Section: j.section, Job: j.name, Ours: figures[0]}
		if j.seconds > 0 {
			r.atMost(figures[0].Value, j.seconds, duration(j.seconds))
		}
		if j.throughput > 0 {
			r.atLeast(figures[0].Throughput, j.throughput, bytesText(j.throughput)+"/s")
		}
		list = append(list, r)
	}
	for i, p := range j.peers {
		theirs := figures[i+1]
		r := row{Section: j.section, Job: j.name, Ours: figures[0], Peer: p.name, Theirs: &theirs, Ratio: theirs.Value / figures[0].Value}
		switch {
		case p.target >= 1:
			r.atLeast(r.Ratio, p.target, fmt.Sprintf("%g x", p.target))
		case p.target > 0:
			r.atLeast(r.Ratio, p.target, fmt.Sprintf("%.2f x", p.target))
		}
		list = append(list, r)
	}
	if j.allocated {
		for i, p := range j.peers {
			ours, theirs := figure{Value: m[0].Allocated, Unit: memory}, figure{Value: m[i+1].Allocated, Unit: memory}
			r := row{Section: j.section, Job: j.name + ", allocated", Ours: ours, Peer: p.name, Theirs: &theirs, Ratio: theirs.Value / ours.Value}
			if p.target > 0 {
				r.atLeast(r.Ratio, 1, "1 x")
			}
			list = append(list, r)
		}
	}
	return list
}

// cells are the columns of a table; the last two may be empty in all of its rows.
func (r *row) cells() []string {
	theirs := ""
	if r.Theirs != nil {
		theirs = r.Theirs.String()
	}
	return []string{
		r.Job, r.Ours.String(), r.Peer, theirs, r.ratio(), r.Target, r.verdict(),
		r.both(func(f *figure) string {
			if f.Allocs == nil {
				return ""
			}
			return count(*f.Allocs)
		}),
		r.both(func(f *figure) string {
			if f.BytesRead == 0 {
				return ""
			}
			return bytesText(f.BytesRead)
		}),
		r.both(func(f *figure) string {
			if f.Requests == 0 {
				return ""
			}
			return count(f.Requests)
		}),
		r.Note,
	}
}

func (r *row) both(text func(*figure) string) string {
	ours, theirs := text(&r.Ours), ""
	if r.Theirs != nil {
		theirs = text(r.Theirs)
	}
	switch {
	case theirs == "":
		return ours
	case ours == "":
		ours = "?"
	}
	return ours + " / " + theirs
}

var columns = []string{"job", "Spile", "peer", "peer's", "ratio", "target", "", "allocations", "bytes read", "requests", "note"}

// table returns the cells of rows below their headings, without the columns that no row fills.
func table(rows []row) [][]string {
	all := [][]string{columns}
	for i := range rows {
		all = append(all, rows[i].cells())
	}
	filled := make([]bool, len(columns))
	for _, cells := range all[1:] {
		for c, text := range cells {
			filled[c] = filled[c] || text != ""
		}
	}
	for i, cells := range all {
		kept := cells[:0:0]
		for c, text := range cells {
			if filled[c] {
				kept = append(kept, text)
			}
		}
		all[i] = kept
	}
	return all
}

func writeText(w io.Writer, rows []row) {
	for _, s := range sections {
		of := ofSection(rows, s.name)
		if len(of) == 0 {
			continue
		}
		fmt.Fprintf(w, "%s: %s\n", s.name, s.title)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, cells := range table(of) {
			fmt.Fprintln(t, "  "+strings.Join(cells, "\t"))
		}
		t.Flush()
		fmt.Fprintln(w)
	}
}

func writeMarkdown(w io.Writer, rows []row) {
	for i, cells := range table(rows) {
		fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
		if i == 0 {
			fmt.Fprintln(w, strings.Repeat("|---", len(cells))+"|")
		}
	}
}

func writeJSON(w io.Writer, rows []row) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Machine string `json:"machine"`
		Rows    []row  `json:"rows"`
	}{machine(), rows})
}

func ofSection(rows []row, name string) []row {
	var of []row
	for _, r := range rows {
		if r.Section == name {
			of = append(of, r)
		}
	}
	return of
}

// update puts the tables between the markers of a document: <!-- bench:NAME --> and <!-- /bench:NAME -->. Sections that
// were not measured keep what they have.
func update(path string, rows []row) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	doc := string(text)
	replace := func(name, body string) error {
		begin, end := "<!-- bench:"+name+" -->\n", "<!-- /bench:"+name+" -->"
		head, rest, ok := strings.Cut(doc, begin)
		_, tail, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			return fmt.Errorf("%s has no place for the table %s", path, name)
		}
		doc = head + begin + body + end + tail
		return nil
	}
	for _, s := range sections {
		of := ofSection(rows, s.name)
		if len(of) == 0 {
			continue
		}
		var b strings.Builder
		writeMarkdown(&b, of)
		if err := replace(s.name, "\n"+b.String()+"\n"); err != nil {
			return err
		}
	}
	if err := replace("machine", machine()+"\n"); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(doc), 0o666)
}

// machine says what the figures were taken on.
func machine() string {
	cpu := ""
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		_, rest, _ := strings.Cut(string(info), "model name")
		line, _, _ := strings.Cut(rest, "\n")
		cpu = ", " + strings.TrimLeft(line, "\t :")
	}
	return fmt.Sprintf("%s, %s/%s, %d cores%s", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), cpu)
}
