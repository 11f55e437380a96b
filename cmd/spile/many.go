package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/secret"
	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/series"
	"github.com/spilehq/spile/source"
)

// manyHelp explains patterns, for the verbs that take them.
const manyHelp = `FILE can be a pattern, in quotes, so that the shell leaves it alone: 'runs/*.msg', 's3://bucket/2026/*.msg'. In it * is any
text within a step of the path, ** any steps, ? a character, [a-z] a range, {a,b} one of some. The objects that match are
read side by side and printed in order, each with its name. A bad one is named on standard error, the others are read, and
the exit status is 3.`

// folderHelp explains folders of artifacts, for verbs that read these. What comes behind it says what becomes of the results.
const folderHelp = `A folder that is no artifact, or the URL of one in a store, s3://bucket/1/series/ with a slash at the end, stands for all
artifacts below it. They are read side by side; a bad one is named on standard error, the others are answered from, and the
exit status is 3, or with --strict 1. `

// eachHelp and allHelp are what becomes of the results for many artifacts: each is printed, or they are one.
const (
	eachHelp = `Each artifact is printed with its name.`
	allHelp  = `The result is that of all of them together. A pattern, in quotes, 'out/*/series/*', gives the result of each artifact,
as {"file":…,"value":…}.`
)

// printedAs says what a verb prints for one object, and so how the results for many are told apart.
type printedAs int

const (
	asText     printedAs = iota // a text: it gets a heading
	asLines                     // a JSON value a line: each line becomes {"file":…,"value":…}
	asDocument                  // one JSON document: those of all become one list of {"file":…,"value":…}
)

// printed is how a verb prints that has a table, and JSON in place of it.
func (f *tableFlags) printed() printedAs {
	if f.asJSON() {
		return asDocument
	}
	return asText
}

// printed is how a verb prints values.
func (f *jsonFlags) printed() printedAs {
	if f.Pretty {
		return asText
	}
	return asLines
}

// forEach runs a verb for what a FILE argument names: one file, every object that a pattern matches, or, for verbs that read
// these, every artifact below a folder.
func (e *env) forEach(ctx context.Context, arg string, in *sourceFlags, as printedAs, do func(e *env, file string) error) error {
	strict := in.artifacts != nil && in.artifacts.strict
	if isPattern(arg) {
		return e.eachOf(ctx, e.matches(ctx, arg), as, strict, do)
	}
	if in.artifacts == nil {
		return do(e, arg)
	}
	names, many, err := e.manyOf(ctx, arg, in)
	if err != nil {
		return err
	}
	if !many {
		return do(e, arg)
	}
	return e.eachOf(ctx, func(yield func(string, error) bool) {
		for _, name := range names {
			if !yield(name, nil) {
				return
			}
		}
	}, as, strict, do)
}

// with is the arguments FILE [PATH] with another file.
func with(file string, args []string) []string { return append([]string{file}, args[1:]...) }

// eachOf runs a verb for objects, some of them at a time, and prints what it prints in the order of the objects. A bad one is
// named and passed, unless strict.
func (e *env) eachOf(ctx context.Context, names iter.Seq2[string, error], as printedAs, strict bool, do func(e *env, file string) error) error {
	defer e.progress(ctx, "read")()
	if as == asDocument {
		e.out.WriteByte('[')
	}
	good, bad := 0, 0
	var failed error
	err := e.sideBySide(ctx, names, do, func(r *oneOf) error {
		if forAll(r.err) || ctx.Err() != nil || r.err != nil && strict {
			return r.err
		}
		if r.err == nil || as != asDocument && r.out.whole > 0 { // a document that has ended too early is none
			if err := r.print(e.out, as, good+bad > 0); err != nil {
				return err
			}
		}
		if r.err == nil {
			good++
			return nil
		}
		bad++
		failed = r.err
		if err := e.out.Flush(); err != nil {
			return err
		}
		for _, one := range apart(named(r.err, shown(r.name))) {
			e.say("%s", e.hinted(one))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if as == asDocument {
		e.out.WriteString("]\n")
	}
	switch {
	case bad > 0 && good == 0:
		return silent{failed}
	case bad > 0:
		e.say("%d of %d objects could not be read", bad, good+bad)
		e.partial = true
	}
	return nil
}

// oneOf is the run of a verb for one of many objects.
type oneOf struct {
	name string
	out  capture
	said capture // on standard error
	err  error
	env  *env
	done chan struct{}
}

func (r *oneOf) close() {
	r.out.Close()
	r.said.Close()
}

// forAll reports whether an error is one that the other objects of many would have as well: a wrong usage, a budget that is spent.
func forAll(err error) bool {
	wrong := usageError{}
	return errors.As(err, &wrong) || isSpent(err)
}

// isSpent reports whether an error is that of a read which would pass a budget.
func isSpent(err error) bool {
	return errors.Is(err, fault.Limit) && overBudget.MatchString(err.Error())
}

// overBudget is how the refusal of a read begins that would pass a budget.
var overBudget = regexp.MustCompile(`budget of (\d+ bytes|\d+ requests|0): `)

// sideBySide runs do for objects, a bounded number of them at a time, and gives the results to take in the order of the names; what they
// say on standard error comes in that order, too. It ends with the first error of the list or of take, and returns when all that was
// begun has ended.
func (e *env) sideBySide(ctx context.Context, names iter.Seq2[string, error], do func(e *env, file string) error, take func(*oneOf) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	free := make(chan struct{}, e.parallel())
	queue := make(chan *oneOf, cap(free)) // bounds the results that wait for their turn
	var listErr error
	running.Go(func() {
		defer close(queue)
		for name, err := range names {
			if err != nil {
				listErr = err
				return
			}
			r := &oneOf{name: name, done: make(chan struct{})}
			select {
			case free <- struct{}{}:
			case <-ctx.Done():
				return
			}
			r.env = e.fork(ctx, &r.out, &r.said)
			running.Go(func() {
				defer close(r.done)
				defer func() { <-free }()
				r.err = do(r.env, r.name)
				if r.err == nil {
					r.err = r.env.out.Flush()
				}
			})
			select {
			case queue <- r:
			case <-ctx.Done():
				<-r.done
				r.close()
				return
			}
		}
	})
	var err error
	for r := range queue {
		<-r.done
		if err == nil {
			e.join(r.env)
			if lines, bad := r.said.Reader(); bad == nil {
				io.Copy(e.stderr, lines)
			}
			if err = take(r); err != nil {
				cancel()
			}
		}
		r.close()
	}
	if err == nil {
		err = listErr
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// parallel is how many objects are read side by side: those of a store wait most of the time.
func (e *env) parallel() int { return max(8, runtime.GOMAXPROCS(0)) }

// fork is the environment of a run for one of many objects: what it prints goes to out, and what it costs counts as before.
func (e *env) fork(ctx context.Context, out io.Writer, errs io.Writer) *env {
	f := &env{
		stdin: strings.NewReader(""), stdinIn: true, stdout: &stdout{ctx: ctx, w: out}, stderr: errs, begun: e.begun, limits: e.limits, remote: e.remote,
		shared: e.shared, started: true, flags: e.flags,
	}
	f.out = bufio.NewWriterSize(f.stdout, 16<<10)
	return f
}

// join takes over what a run tells the end of all.
func (e *env) join(f *env) {
	e.partial = e.partial || f.partial
	e.inputs = append(e.inputs, f.inputs...)
	if f.decoded != nil {
		sum := *f.decoded
		if e.decoded != nil {
			sum += *e.decoded
		}
		e.decoded = &sum
	}
}

// print prints what a run has printed, as far as its lines are whole.
func (r *oneOf) print(w *bufio.Writer, as printedAs, behind bool) error {
	in, err := r.out.Reader()
	if err != nil {
		return err
	}
	name := shown(r.name)
	if as == asText {
		if behind {
			w.WriteByte('\n')
		}
		fmt.Fprintf(w, "==> %s <==\n", fault.OneLine(name))
		_, err := io.Copy(w, in)
		return err
	}
	text, err := marshal(name)
	if err != nil {
		return err
	}
	begin := func() {
		w.WriteString(`{"file":`)
		w.Write(text)
		w.WriteString(`,"value":`)
	}
	if as == asDocument {
		if behind {
			w.WriteByte(',')
		}
		begin()
		_, err := io.CopyN(w, in, r.out.whole-1) // without the end of its last line
		w.WriteByte('}')
		return err
	}
	lines := bufio.NewReaderSize(in, 64<<10)
	for inside := false; ; {
		piece, err := lines.ReadSlice('\n')
		switch {
		case len(piece) == 0 && err == io.EOF:
			return nil
		case err != nil && err != bufio.ErrBufferFull:
			return err
		}
		if !inside {
			begin()
		}
		w.Write(bytes.TrimSuffix(piece, []byte("\n")))
		if inside = err != nil; !inside {
			w.WriteString("}\n")
		}
	}
}

// capture keeps what a run prints: a short text in memory, a long one in a temporary file.
type capture struct {
	size  int64
	whole int64 // up to the end of the last line that has one
	mem   bytes.Buffer
	file  *source.Temporary
}

// maxCaptured is how much is kept in memory for each of the objects that are read side by side.
const maxCaptured = 1 << 20

func (c *capture) Write(p []byte) (int, error) {
	if end := bytes.LastIndexByte(p, '\n'); end >= 0 {
		c.whole = c.size + int64(end) + 1
	}
	c.size += int64(len(p))
	if c.file == nil && c.mem.Len()+len(p) <= maxCaptured {
		return c.mem.Write(p)
	}
	if c.file == nil {
		f, err := source.CreateTemporary("")
		if err != nil {
			return 0, err
		}
		c.file = f
	}
	return c.file.Write(p)
}

// Reader reads the whole lines that were written.
func (c *capture) Reader() (io.Reader, error) {
	if c.file == nil {
		return io.LimitReader(&c.mem, c.whole), nil
	}
	_, err := c.file.Seek(0, io.SeekStart)
	return io.LimitReader(io.MultiReader(&c.mem, c.file), c.whole), err
}

func (c *capture) Close() {
	if c.file != nil {
		c.file.Close()
	}
}

// isPattern reports whether a FILE argument stands for many objects. A file whose name looks like a pattern is a file.
func isPattern(arg string) bool {
	if isURL(arg) {
		_, _, pattern := storePattern(arg)
		return pattern
	}
	path, err := localPath(arg)
	if err != nil || arg == "-" || !strings.ContainsAny(path, "*?[{") {
		return false
	}
	_, err = os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// storePattern takes a pattern of objects of a store apart: what all of them begin with, and what they match. Servers of
// files over HTTP do not list them.
func storePattern(arg string) (prefix, pattern string, ok bool) {
	if isHTTP(arg) || storeVersion.MatchString(arg) || secret.URL(arg) != arg { // a ? that a signature stands behind
		return "", "", false
	}
	at := strings.IndexAny(arg, "*?[{")
	if at < 0 {
		return "", "", false
	}
	return arg[:at], arg, true
}

// matches gives the objects that a pattern matches, in the order of their names, without sidecars, unless the pattern wants these.
func (e *env) matches(ctx context.Context, arg string) iter.Seq2[string, error] {
	sidecar := msglc.SidecarName("")
	wants := func(name string) bool { return !strings.HasSuffix(name, sidecar) || strings.HasSuffix(arg, sidecar) }
	return func(yield func(string, error) bool) {
		found := false
		give := func(name string, err error) bool {
			if err == nil && !wants(name) {
				return true
			}
			found = true
			return yield(name, err)
		}
		if isURL(arg) {
			prefix, pattern, _ := storePattern(arg)
			folders := strings.HasSuffix(pattern, "/") // which are of artifacts
			if folders {
				pattern += series.ManifestName
			}
			if !doublestar.ValidatePattern(pattern) {
				yield("", usagef("%q is no pattern", arg))
				return
			}
			for entry, err := range e.list(ctx, prefix) {
				if err == nil && !doublestar.MatchUnvalidated(pattern, entry.Name) {
					continue
				}
				name := entry.Name
				if folders && err == nil {
					name = beside(name, "")
				}
				if !give(name, err) || err != nil {
					return
				}
			}
		} else {
			path, err := localPath(arg)
			var names []string
			if err == nil {
				names, err = doublestar.FilepathGlob(path)
			}
			if err != nil {
				yield("", usagef("%q is no pattern: %s", arg, err))
				return
			}
			slices.Sort(names)
			for _, name := range names {
				if !give(name, nil) {
					return
				}
			}
		}
		if !found {
			yield("", fault.New(fault.NotFound, "", "nothing matches").In(shown(arg)))
		}
	}
}

// expanded is a list of FILE arguments with what the patterns in it match in their place.
func (e *env) expanded(ctx context.Context, files []string) ([]string, error) {
	if !slices.ContainsFunc(files, isPattern) {
		return files, nil
	}
	var all []string
	for _, file := range files {
		if !isPattern(file) {
			all = append(all, file)
			continue
		}
		for name, err := range e.matches(ctx, file) {
			if err != nil {
				return nil, err
			}
			all = append(all, name)
		}
	}
	return all, nil
}

// below gives the files in a folder and the folders in it, or the objects whose URL begins with a prefix, in the order of their
// names. Sidecars, and what begins with a dot, are left out.
func (e *env) below(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		found := false
		sidecar := msglc.SidecarName("")
		if isURL(prefix) {
			for entry, err := range e.list(ctx, prefix) {
				if err == nil && (strings.HasSuffix(entry.Name, sidecar) || strings.HasSuffix(entry.Name, "/")) {
					continue // some programs make empty objects that stand for folders
				}
				found = true
				if !yield(entry.Name, err) || err != nil {
					return
				}
			}
		} else {
			ended := errors.New("ended")
			root := prefix + string(filepath.Separator) // a link to a folder is one
			err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				switch hidden := strings.HasPrefix(d.Name(), ".") && path != root; {
				case hidden && d.IsDir():
					return filepath.SkipDir
				case hidden || !d.Type().IsRegular() || strings.HasSuffix(path, sidecar):
					return nil
				}
				found = true
				if ctx.Err() != nil || !yield(path, nil) {
					return ended
				}
				return nil
			})
			switch {
			case err == ended:
				return
			case err != nil:
				yield("", fault.New(nil, "", "").In(prefix).Because(bare(err)))
				return
			}
		}
		if !found {
			yield("", fault.New(fault.NotFound, "", "no file is below it").In(shown(prefix)))
		}
	}
}
