package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"

	"github.com/spf13/pflag"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/series"
)

// addStrict adds the flag of verbs that read many artifacts.
func (f *sourceFlags) addStrict(flags *pflag.FlagSet) {
	flags.BoolVar(&f.artifacts.strict, "strict", false, "fail at the first bad file of many, instead of naming it and passing to the next")
}

// manyOf returns the artifacts that a FILE argument which is no pattern stands for, where it stands for many: those below a
// folder.
func (e *env) manyOf(ctx context.Context, arg string, in *sourceFlags) (names []string, many bool, err error) {
	if in.format != anyFormat && in.format != formatSeries {
		return nil, false, nil
	}
	if dir, ok := folder(arg); ok {
		if _, err := os.Lstat(filepath.Join(dir, series.ManifestName)); !errors.Is(err, fs.ErrNotExist) {
			return nil, false, nil
		}
		names = artifactsBelow(dir)
		return names, len(names) > 0, nil // the error about the folder says what is missing
	}
	if !folderURL(arg) || isHTTP(arg) { // servers of files over HTTP do not list them
		return nil, false, nil
	}
	if _, err := series.ParseUUID(path.Base(arg)); err == nil { // an artifact, which needs no list
		return nil, false, nil
	}
	for name, err := range e.artifactsIn(ctx, arg) {
		if err != nil {
			return nil, false, err
		}
		if name == arg {
			return nil, false, nil
		}
		names = append(names, name)
	}
	return names, len(names) > 0, nil
}

// notPattern returns the artifacts that a FILE argument stands for as one; nil where it is one artifact, or a pattern, whose
// matches are printed one by one.
func (e *env) notPattern(ctx context.Context, arg string, in *sourceFlags) (*artifactSet, error) {
	if isPattern(arg) {
		return nil, nil
	}
	names, many, err := e.manyOf(ctx, arg, in)
	if err != nil || !many {
		return nil, err
	}
	return e.newSet(in, names), nil
}

// artifactSet are artifacts that a verb answers from as one.
type artifactSet struct {
	*env
	in    *sourceFlags
	names []string
	bad   map[string]error // that were named
}

func (e *env) newSet(in *sourceFlags, names []string) *artifactSet {
	if !in.artifacts.once {
		in.artifacts.cache = series.NewCache(series.DefaultCacheBytes)
	}
	return &artifactSet{env: e, in: in, names: names, bad: make(map[string]error)}
}

// eachArtifact opens artifacts, some at a time, and gives them to read, with their places in the list. What it returns of
// a good one goes to take, in the order of the list. A bad one is named, once, and passed; with --strict, and when all of them
// are bad, that is an error.
func eachArtifact[T any](ctx context.Context, m *artifactSet, read func(ctx context.Context, e *env, i int, a *artifact) (T, error), take func(e *env, v T) error) error {
	names := func(yield func(string, error) bool) {
		for _, name := range m.names {
			if m.bad[name] == nil && !yield(name, nil) {
				return
			}
		}
	}
	var mu sync.Mutex
	results := make(map[*env]T)
	skipped := make(map[string]error)
	err := m.sideBySide(ctx, names, func(e *env, name string) error {
		return e.withArtifact(ctx, name, m.in, func(a *artifact) error {
			v, err := read(ctx, e, slices.Index(m.names, name), a)
			if err == nil {
				mu.Lock()
				results[e] = v
				mu.Unlock()
			}
			return err
		})
	}, func(r *oneOf) error {
		if forAll(r.err) || ctx.Err() != nil || r.err != nil && m.in.artifacts.strict {
			return r.err
		}
		if r.err != nil {
			skipped[r.name] = r.err
			for _, one := range apart(named(r.err, shown(r.name))) {
				m.say("%s", m.hinted(one))
			}
			return nil
		}
		mu.Lock()
		v := results[r.env]
		delete(results, r.env)
		mu.Unlock()
		return take(r.env, v)
	})
	if err != nil {
		return err
	}
	for name, err := range skipped {
		m.bad[name] = err
	}
	switch {
	case len(skipped) == 0:
	case len(m.bad) == len(m.names):
		return silent{m.bad[m.names[0]]}
	default:
		m.say("%d of %d artifacts could not be read", len(m.bad), len(m.names))
		m.partial = true
	}
	return nil
}

// gather selects series in all artifacts, which come in the order of their identifiers.
func (m *artifactSet) gather(ctx context.Context, q *series.Query, f *selectFlags) (*series.Gatherer, error) {
	defer m.progress(ctx, "read")()
	g := series.NewGatherer(ctx, q, &series.GatherOptions{KeepFirst: f.keepFirst, Parallel: m.parallel()})
	err := eachArtifact(ctx, m, func(ctx context.Context, _ *env, i int, a *artifact) (*explained, error) {
		x := &explained{a.Name(), *q}
		x.query.Explain = &series.Explain{}
		return x, g.Add(ctx, a.Artifact, i, x.query.Explain)
	}, func(_ *env, x *explained) error {
		x.query.Explain.Truncated = false // that of all counts
		m.explained(x.name, f, &x.query)
		return nil
	})
	if err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

// explained is a query that was run on an artifact.
type explained struct {
	name  string
	query series.Query
}

// selectMany prints the series that match in any of many artifacts, as if they were one.
func (m *artifactSet) selectMany(ctx context.Context, dir string, q *series.Query, f *selectFlags, count bool) error {
	if count {
		q.Columns, q.Limit = []string{}, 0
	}
	g, err := m.gather(ctx, q, f)
	if err != nil {
		return err
	}
	defer g.Close()
	if count {
		n := 0
		for _, err := range g.Records() {
			if err != nil {
				return err
			}
			n++
		}
		fmt.Fprintln(m.out, n)
		m.unknownLabels(shown(dir), f.labels, g.Tags())
		return nil
	}
	if err := m.printRecords(g.Records()); err != nil {
		return err
	}
	if n := g.Conflicts(); n > 0 {
		m.say("%d series had other labels in a later artifact; those of the earliest were kept", n)
	}
	m.unknownLabels(shown(dir), f.labels, g.Tags())
	m.truncated(shown(dir), f, q)
	return nil
}

// labelNames are the names of labels in all artifacts, in the order in which they are first seen.
func (m *artifactSet) labelNames(ctx context.Context, dir string, q *series.Query, f *selectFlags) (names []string, err error) {
	err = m.lists(ctx, dir, q, f, (*series.Artifact).LabelNames, func(more []string) {
		for _, name := range more {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	})
	return names, err
}

// labelValues are the values of a label in all artifacts, sorted.
func (m *artifactSet) labelValues(ctx context.Context, dir, label string, q *series.Query, f *selectFlags) ([]string, error) {
	all := make(map[string]struct{})
	limit := q.Limit
	q.Limit = 0
	err := m.lists(ctx, dir, q, f, func(a *series.Artifact, ctx context.Context, q *series.Query) ([]string, error) {
		return a.LabelValues(ctx, label, q)
	}, func(more []string) {
		for _, v := range more {
			all[v] = struct{}{}
		}
	})
	values := slices.Sorted(maps.Keys(all))
	if limit > 0 && int64(len(values)) > limit {
		values, q.Explain.Truncated = values[:limit], true
	}
	return values, err
}

// lists asks all artifacts for a list of names.
func (m *artifactSet) lists(ctx context.Context, dir string, q *series.Query, f *selectFlags, ask func(*series.Artifact, context.Context, *series.Query) ([]string, error), take func([]string)) error {
	type answer struct {
		*explained
		names []string
		tags  []series.Tag
	}
	var tags []series.Tag // of all
	err := eachArtifact(ctx, m, func(ctx context.Context, _ *env, _ int, a *artifact) (answer, error) {
		x := &explained{a.Name(), *q}
		x.query.Explain = &series.Explain{}
		names, err := ask(a.Artifact, ctx, &x.query)
		return answer{x, names, a.Tags()}, err
	}, func(_ *env, one answer) error {
		take(one.names)
		tags = append(tags, one.tags...)
		m.explained(one.name, f, &one.query)
		return nil
	})
	if err == nil {
		m.unknownLabels(shown(dir), f.labels, tags)
	}
	return err
}

// getMany prints what paths name in many artifacts, as if they were one: a series, a table, all, or a label of them.
func (m *artifactSet) getMany(ctx context.Context, dir string, paths []string, out *jsonFlags) error {
	p := &seriesPrinter{env: m.env, ctx: ctx, pretty: out.Pretty}
	for _, path := range paths {
		steps, err := pathSteps(path)
		if err != nil {
			return err
		}
		missing := func(format string, args ...any) error {
			return fault.New(fault.NotFound, "", format, args...).On(path).In(dir)
		}
		if len(steps) > 0 {
			if _, ok := partStep(steps[0]); ok {
				return fault.New(fault.Invalid, "", "names a part of one artifact, and this is a folder of many").On(path).In(dir)
			}
		}
		var s seriesPlace
		if err := s.find(steps, missing); err != nil {
			return err
		}
		if err := m.getPlace(ctx, p, &s, missing); err != nil {
			return err
		}
		if err := p.line(); err != nil {
			return err
		}
		if err := m.out.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func (m *artifactSet) getPlace(ctx context.Context, p *seriesPrinter, s *seriesPlace, missing func(format string, args ...any) error) error {
	q := &series.Query{Mode: series.Native, Range: &s.Range, Explain: &series.Explain{}}
	isLabel := s.column != "" && s.column != tsidColumn && s.column != rowCountColumn
	switch {
	case isLabel:
		q.Columns = []string{s.column}
	case s.column != "":
		q.Columns = []string{}
	}
	g, err := m.gather(ctx, q, &selectFlags{})
	if err != nil {
		return err
	}
	defer g.Close()
	known := func() bool { // after the records have begun
		return !isLabel || slices.ContainsFunc(g.Tags(), func(t series.Tag) bool { return t.Name == s.column })
	}
	if !s.one {
		p.buf = append(p.buf, '[')
	}
	n := 0
	for r, err := range g.Records() {
		if err != nil {
			return err
		}
		if !known() {
			break
		}
		if s.one && n > 0 {
			return fault.New(fault.Conflict, "", "artifacts of several regions have the series; name one").On(r.ID.String())
		}
		if n > 0 {
			p.buf = append(p.buf, ',')
		}
		n++
		if err := p.add(r, s.column); err != nil {
			return err
		}
		if err := p.spill(); err != nil {
			return err
		}
	}
	switch {
	case !known():
		return missing("there is no label %q; spile info lists them", s.column)
	case s.one && n == 0:
		return missing("there is no such series")
	case s.level < 0 && n == 0:
		return missing("there is no such table")
	case !s.one:
		p.buf = append(p.buf, ']')
	}
	return nil
}
