package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// section is a group of jobs that are measured together.
type section struct {
	name, title string
	run         func(*setup) ([]row, error)
}

var sections = []section{
	{"open", "open a document and read one deep value, in process, page cache warm", measureOpen},
	{"process", "the same as a whole process: start-up, memory", measureProcess},
	{"decode", "a whole document to Go values and to JSON text; passing over it", measureDecode},
	{"write", "indexing, packing, writing", measureWrite},
	{"concurrency", "many goroutines on one reader", measureConcurrency},
	{"memory", "pack a JSON file of any length", measureMemory},
	{"tables", "tables of game data: loading, decoding, writing", measureTables},
	{"sizes", "the same tables as files", measureSizes},
	{"series-build", "series: building artifacts, their size", measureSeriesBuild},
	{"series-query", "series: lookups, queries, values of labels", measureSeriesQuery},
	{"series-long", "the same with ten times as many series", measureSeriesLong},
	{"series-memory", "series: memory of many open artifacts", measureSeriesMemory},
	{"remote", "over a network with 30 ms before every answer", measureRemote},
	{"costs", "what a table of contents costs, and where it does not pay", measureCosts},
}

// setup is what a run was told to do.
type setup struct {
	effort
	dir     string // where files are kept between runs
	archive size   // of the document that is opened
	decode  size   // of the mixed document that is decoded
	scan    size   // of the one that is passed over, indexed and packed
	pack    size   // of the JSON file that is packed for its memory
	growth  int    // rows of the long table of the set
	rows    int    // rows of the one long table
	series  int    // in an artifact
	quick   bool
	jobs    *regexp.Regexp // of the names of jobs, where not all are measured
	notes   []string
}

func main() {
	if launched() || wroteTable() || openedArtifacts() {
		return
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	s := &setup{effort: effort{rounds: 11, batch: 200 * time.Millisecond}}
	var only, updated string
	var asJSON, asMarkdown, huge, pack2g bool
	flag.StringVar(&only, "only", "", "the sections to measure, by comma (of "+sectionNames()+"; default all but "+longSection+")")
	flag.BoolVar(&asJSON, "json", false, "print JSON")
	flag.BoolVar(&asMarkdown, "markdown", false, "print Markdown")
	flag.StringVar(&updated, "update", "", "put the tables into this `file`, as docs/performance.md")
	flag.Var(&s.archive, "size", "of the document that is opened, which is compared with one a tenth as long (default 1GB, less where the disk is short)")
	flag.BoolVar(&huge, "huge", false, "open a document of 10 GB, and compare it with one of 1 GB; measure artifacts of 10 million series too")
	flag.BoolVar(&pack2g, "pack2g", false, "pack JSON files of 2 GB (default 256 MB)")
	flag.IntVar(&s.rows, "rows", 0, "of the long table (default 5,000,000)")
	flag.BoolVar(&s.quick, "quick", os.Getenv("CI") != "", "small inputs and few rounds, to see that everything runs")
	flag.StringVar(&s.dir, "dir", "", "where made files are kept (default a folder of the user's cache)")
	flag.IntVar(&s.rounds, "rounds", s.rounds, "batches of each contender")
	flag.DurationVar(&s.batch, "batch", s.batch, "the least length of a batch")
	flag.BoolVar(&s.cpu, "cpu", false, "count processor time, not time of day: for a machine that is busy")
	flag.Func("jobs", "measure only the jobs whose name matches this `expression`", func(text string) (err error) {
		s.jobs, err = regexp.Compile(text)
		return err
	})
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	s.decode, s.scan, s.pack = 8e6, 64e6, 256e6
	s.growth, s.series = growthRows, 1_000_000
	long := longRows
	if s.quick {
		s.growth, long, s.series = growthRows/10, 50_000, 20_000
		s.decode, s.scan, s.pack = 1e6, 8e6, 32e6
		s.rounds, s.batch = min(s.rounds, 3), min(s.batch, 50*time.Millisecond)
	}
	if s.rows <= 0 {
		s.rows = long
	}
	if pack2g {
		s.pack = 2e9
	}
	if err := s.prepare(huge); err != nil {
		return err
	}
	chosen, err := chooseSections(only, huge || s.quick)
	if err != nil {
		return err
	}
	var rows []row
	for _, sec := range chosen {
		progress("%s: %s", sec.name, sec.title)
		of, err := sec.run(s)
		if err != nil {
			return fmt.Errorf("%s: %w", sec.name, err)
		}
		rows = append(rows, of...)
	}
	switch {
	case asJSON:
		err = writeJSON(os.Stdout, rows)
	case asMarkdown:
		for _, sec := range chosen {
			fmt.Printf("\n### %s\n\n", sec.title)
			writeMarkdown(os.Stdout, ofSection(rows, sec.name))
		}
	case updated == "":
		fmt.Println(machine())
		fmt.Println()
		writeText(os.Stdout, rows)
	}
	for _, n := range s.notes {
		progress("note: %s", n)
	}
	if err == nil && updated != "" {
		err = update(updated, rows)
	}
	return err
}

func sectionNames() string {
	var names []string
	for _, s := range sections {
		names = append(names, s.name)
	}
	return strings.Join(names, ",")
}

// chooseSections takes the sections that are named: all without a name, the long one if that is asked for.
func chooseSections(only string, long bool) ([]section, error) {
	var chosen []section
	if only == "" {
		for _, s := range sections {
			if long || s.name != longSection {
				chosen = append(chosen, s)
			}
		}
		return chosen, nil
	}
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(sections, func(s section) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no section %q; there are %s", name, sectionNames())
		}
		chosen = append(chosen, sections[i])
	}
	return chosen, nil
}

// measureJobs measures jobs one after another.
func (s *setup) measureJobs(jobs []job) ([]row, error) {
	var rows []row
	for i := range jobs {
		if s.jobs != nil && !s.jobs.MatchString(jobs[i].name) {
			continue
		}
		progress("  %s", jobs[i].name)
		m, err := jobs[i].measure(s.effort)
		if err != nil {
			return nil, err
		}
		rows = append(rows, jobs[i].rows(m)...)
	}
	return rows, nil
}
