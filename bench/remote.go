package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/series"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/source/httprange"
	"github.com/spilehq/spile/source/remote"
)

// farAway is how late every answer is.
const farAway = 30 * time.Millisecond

// farServer serves the files of a folder, with ranges, as HTTP and as a bucket of S3 that anybody may read. It counts, so that
// contenders of every kind are counted alike.
type farServer struct {
	url             string
	dir             string
	server          *http.Server
	requests, bytes atomic.Int64
}

const farBucket = "bench"

func startFar(dir string) (*farServer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &farServer{url: "http://" + l.Addr().String(), dir: dir}
	s.server = &http.Server{Handler: s}
	go s.server.Serve(l)
	return s, nil
}

func (s *farServer) close() { s.server.Close() }

// at is the URL of a file in the folder.
func (s *farServer) at(file string) string { return s.url + "/" + farBucket + "/" + s.key(file) }

func (s *farServer) key(file string) string {
	name, err := filepath.Rel(s.dir, file)
	if err != nil {
		panic(err) // all files are in the folder
	}
	return filepath.ToSlash(name)
}

func (s *farServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	time.Sleep(farAway)
	key, ok := strings.CutPrefix(path.Clean(r.URL.Path), "/"+farBucket+"/")
	f, err := os.Open(filepath.Join(s.dir, filepath.FromSlash(key)))
	if err != nil || !ok || r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.NotFound(w, r)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("ETag", fmt.Sprintf(`"%x-%x"`, info.Size(), info.ModTime().UnixNano()))
	http.ServeContent(&countingAnswer{w, &s.bytes}, r, "x.bin", info.ModTime(), f)
}

type countingAnswer struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c *countingAnswer) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.n.Add(int64(n))
	return n, err
}

// counting counts what a contender asks of the server. Nothing else asks while it runs.
func (s *farServer) counting(c contender) contender {
	c.bytesRead, c.requests = s.bytes.Load, s.requests.Load
	return c
}

func measureRemote(s *setup) ([]row, error) {
	far, err := startFar(s.dir)
	if err != nil {
		return nil, err
	}
	defer far.close()
	file, err := s.documentFile(int64(s.archive))
	if err != nil {
		return nil, err
	}
	if err := warm(file); err != nil {
		return nil, err
	}
	client := httprange.NewClient()
	defer client.CloseIdleConnections()
	document := &farDocument{far, client, file, runsOf(int64(s.archive))}
	o, err := s.startFarOriginal()
	if errors.Is(err, errNoPython) {
		s.notes = append(s.notes, err.Error())
	} else if err != nil {
		return nil, err
	} else {
		defer o.close()
		s.notes = append(s.notes, "the original over s3fs: "+o.about)
	}
	leaves := 1000
	if s.quick {
		leaves = 20
	}
	rows, err := s.measureJobs(append(document.values(o, bytesText(float64(s.archive))), document.leaves(leaves)))
	if err != nil {
		return nil, err
	}
	of, err := s.farSeries(far, client)
	return append(rows, of...), err
}

// farDocument is a document on the server.
type farDocument struct {
	far    *farServer
	client *http.Client
	file   string
	runs   int
}

// open opens the document, and knows nothing of it before.
func (d *farDocument) open(ctx context.Context) (*msglc.Reader, error) {
	obj, err := openFar(ctx, d.far.at(d.file), d.client)
	if err != nil {
		return nil, err
	}
	r, err := msglc.Open(ctx, obj, nil)
	if err != nil {
		obj.Close()
	}
	return r, err
}

func openFar(ctx context.Context, url string, client *http.Client) (source.Object, error) {
	var meter source.Meter
	return httprange.OpenURL(ctx, url, &httprange.Options{Options: remote.Options{Meter: &meter}, Client: client})
}

// values are the jobs of reading one value, at each position.
func (d *farDocument) values(o *original, size string) []job {
	var jobs []job
	for _, p := range positions {
		at := deepPath(d.runs, p.at)
		read := func() (any, error) {
			ctx := context.Background()
			r, err := d.open(ctx)
			if err != nil {
				return nil, err
			}
			defer r.Close()
			n, err := r.Find(ctx, msglc.SplitPath(at))
			if err != nil {
				return nil, err
			}
			return n.Value(ctx)
		}
		j := job{section: "remote", name: size + ", " + p.name + ": " + at, rounds: 3, ours: d.far.counting(answering("Spile", read))}
		if o != nil {
			theirs := func() (any, error) {
				var answer opened
				err := o.ask(map[string]any{"op": "remote", "endpoint": d.far.url, "path": farBucket + "/" + d.far.key(d.file), "at": at}, &answer)
				return answer.Value, err
			}
			j.peers = append(j.peers, d.far.counting(answering("msglc (Python), s3fs", theirs)))
		}
		j.peers = append(j.peers, d.far.counting(answering("all of it downloaded, then Spile", func() (any, error) { return d.download(at) })))
		jobs = append(jobs, j)
	}
	return jobs
}

// answering is a contender whose runs give the answer.
func answering(name string, read func() (any, error)) contender {
	return contender{name: name, run: func() error { _, err := read(); return err }, answer: func() (any, error) {
		v, err := read()
		return numbers(v), err
	}}
}

// download copies the document to a file, and reads the value there.
func (d *farDocument) download(at string) (any, error) {
	resp, err := d.client.Get(d.far.at(d.file))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	f, err := os.CreateTemp(d.far.dir, "download-*.tmp")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	_, err = io.Copy(f, resp.Body)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	var meter source.Meter
	return readDeep(context.Background(), f.Name(), at, &meter)
}

// leaves is the job of reading many values of a document that was just opened: together, and one after the other.
func (d *farDocument) leaves(n int) job {
	random := rand.New(rand.NewPCG(12, 13))
	paths := make([]msglc.Path, n)
	for i := range paths {
		paths[i] = msglc.Path{
			msglc.TextStep("runs"), msglc.IndexStep(random.Int64N(int64(d.runs))), msglc.TextStep("steps"), msglc.IndexStep(random.Int64N(stepsOfRun)), msglc.TextStep("energy"),
		}
	}
	reading := func(name string, each func(context.Context, *msglc.Reader, func(msglc.Node) error) error) contender {
		return d.far.counting(answering(name, func() (any, error) {
			ctx := context.Background()
			r, err := d.open(ctx)
			if err != nil {
				return nil, err
			}
			defer r.Close()
			var values []any
			err = each(ctx, r, func(n msglc.Node) error {
				v, err := n.Value(ctx)
				values = append(values, v)
				return err
			})
			return values, err
		}))
	}
	return job{
		section: "remote", name: fmt.Sprintf("%d leaves at random", n), rounds: 1,
		ours: reading("Spile, together", func(ctx context.Context, r *msglc.Reader, use func(msglc.Node) error) error {
			for n, err := range r.FindAll(ctx, paths) {
				if err == nil {
					err = use(n)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}),
		peers: []contender{reading("Spile, one after the other", func(ctx context.Context, r *msglc.Reader, use func(msglc.Node) error) error {
			for _, p := range paths {
				n, err := r.Find(ctx, p)
				if err == nil {
					err = use(n)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})},
	}
}

// farSeries measures queries over artifacts on the server, beside DuckDB over the same series in Parquet where it can read
// over HTTP.
func (s *setup) farSeries(far *farServer, client *http.Client) ([]row, error) {
	duck, err := s.startFarDuck()
	if errors.Is(err, errNoPython) {
		s.notes = append(s.notes, "DuckDB is left out of section remote: "+err.Error())
	} else if err != nil {
		return nil, err
	} else {
		defer duck.close()
		s.notes = append(s.notes, "over HTTP: "+duck.about)
	}
	set := newSeriesSet(s.series, false)
	dir := filepath.Join(s.dir, fmt.Sprintf("remote-series-%d", s.series))
	defer os.RemoveAll(dir)
	progress("  %s series of %s: writing the files", count(float64(s.series)), set.name)
	files, err := set.files(dir)
	if err != nil {
		return nil, err
	}
	queries, err := set.farQueries(far.at(files.parquet))
	if err != nil {
		return nil, err
	}
	var jobs []job
	for _, q := range queries {
		jobs = append(jobs, set.farJob(q, far, files, client, duck))
	}
	return s.measureJobs(jobs)
}

// farQuery is a question to an artifact and to a Parquet file of the same series.
type farQuery struct {
	name string
	ours func(context.Context, *series.Artifact) (any, error)
	sql  string
	rows func([][]*string) (any, error) // makes an answer of the rows that the SQL gives
}

// farQueries are the questions: all labels of the series that have one value of few, and of many; one series; how many series
// each table has.
func (s *seriesSet) farQueries(parquet string) ([]farQuery, error) {
	from := "read_parquet('" + parquet + "')"
	var queries []farQuery
	for _, texts := range seriesQueries[:2] {
		matchers, name, err := matchersOf(texts)
		if err != nil {
			return nil, err
		}
		queries = append(queries, farQuery{
			name: "{" + name + "}",
			ours: func(_ context.Context, a *series.Artifact) (any, error) { return totalOf(a, matchers) },
			sql:  duckTotal(s.labels, matchers, from),
			rows: func(rows [][]*string) (any, error) {
				if len(rows) != 1 {
					return nil, fmt.Errorf("%d rows", len(rows))
				}
				return totalFrom(texted(rows[0]))
			},
		})
	}
	id := s.rows[len(s.rows)/3].ID
	columns := "__series_row_count"
	for _, name := range s.labels {
		columns += `, "` + name + `"`
	}
	return append(queries, farQuery{
		name: "lookup of a table and a TSID",
		ours: func(ctx context.Context, a *series.Artifact) (any, error) {
			r, err := a.Lookup(ctx, id)
			if err != nil {
				return nil, err
			}
			values := map[string]string{"": fmt.Sprint(r.RowCount)}
			for _, l := range r.Labels {
				values[l.Name] = l.Value
			}
			return values, nil
		},
		sql: fmt.Sprintf("SELECT %s FROM %s WHERE __table_id = %d AND __tsid = %d", columns, from, id.Table, id.TSID),
		rows: func(rows [][]*string) (any, error) {
			if len(rows) != 1 {
				return nil, fmt.Errorf("%d rows", len(rows))
			}
			values := map[string]string{"": *rows[0][0]}
			for i, v := range rows[0][1:] {
				if v != nil {
					values[s.labels[i]] = *v
				}
			}
			return values, nil
		},
	}, farQuery{
		name: "number of series by table",
		ours: seriesByTable,
		sql:  "SELECT __table_id, count(*) FROM " + from + " GROUP BY __table_id",
		rows: func(rows [][]*string) (any, error) {
			counts := make(map[string]string)
			for _, row := range rows {
				of := texted(row)
				counts[of[0]] = of[1]
			}
			return counts, nil
		},
	}), nil
}

// texted is a row without nulls.
func texted(row []*string) []string {
	out := make([]string, len(row))
	for i, v := range row {
		if v != nil {
			out[i] = *v
		}
	}
	return out
}

// seriesByTable adds up what pages say.
func seriesByTable(ctx context.Context, a *series.Artifact) (any, error) {
	counts := make(map[uint32]int)
	for i := range a.NumParts() {
		part, err := a.Part(ctx, i)
		if err != nil {
			return nil, err
		}
		for k := range part.Leaves {
			blocks, err := a.Blocks(ctx, i, k)
			if err != nil {
				return nil, err
			}
			for _, b := range blocks {
				counts[b.First.Table] += b.Series
			}
		}
	}
	out := make(map[string]string, len(counts))
	for table, n := range counts {
		out[fmt.Sprint(table)] = fmt.Sprint(n)
	}
	return out, nil
}

func (s *seriesSet) farJob(q farQuery, far *farServer, files *seriesFiles, client *http.Client, duck *farDuck) job {
	ask := func(open func() (*series.Artifact, error)) (any, error) {
		a, err := open()
		if err != nil {
			return nil, err
		}
		defer a.Close()
		return q.ours(context.Background(), a)
	}
	ours := func() (any, error) {
		return ask(func() (*series.Artifact, error) {
			return series.Open(context.Background(), func(ctx context.Context, name string) (source.Object, error) {
				return openFar(ctx, far.at(filepath.Join(files.artifact, name)), client)
			}, nil)
		})
	}
	whole := func() (any, error) {
		for _, file := range []string{series.ManifestName, series.PartName(0)} {
			resp, err := client.Get(far.at(filepath.Join(files.artifact, file)))
			if err != nil {
				return nil, err
			}
			_, err = io.Copy(io.Discard, resp.Body)
			if err := errors.Join(err, resp.Body.Close()); err != nil {
				return nil, err
			}
		}
		return ask(func() (*series.Artifact, error) { return openArtifact(files.artifact, nil, nil) })
	}
	j := job{section: "remote", name: s.jobName(q.name), rounds: 3, ours: far.counting(answering("Spile", ours))}
	if duck != nil {
		peer := far.counting(answering("DuckDB, Parquet over HTTP", func() (any, error) {
			rows, err := duck.query(q.sql)
			if err != nil {
				return nil, err
			}
			return q.rows(rows)
		}))
		peer.spent = func() time.Duration { return duck.spent }
		j.peers = append(j.peers, peer)
	}
	j.peers = append(j.peers, far.counting(answering("all of it downloaded, then Spile", whole)))
	return j
}
