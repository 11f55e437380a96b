package promapi

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/spilehq/spile/adapters/promql"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/series"
)

// truncated is the warning of Prometheus.
const truncated = "results truncated due to limit"

// region is the artifacts of one region that a question is about.
type region struct {
	artifacts []*served
	// merger is nil where all of them list the same tags: then the sets of labels of the one series are equal, and one
	// artifact is read behind the other.
	merger *series.Merger
	names  map[uint32]string // the names of tags by their columns, where there is a merger
}

// regions are the artifacts that a question is about.
func (q *query) regions() ([]*region, error) {
	var out []*region
	for _, a := range q.h.artifacts {
		if q.excluded[a] || !q.meets(a) {
			continue
		}
		if n := len(out); n == 0 || out[n-1].artifacts[0].manifest.RegionID != a.manifest.RegionID {
			out = append(out, &region{})
		}
		r := out[len(out)-1]
		r.artifacts = append(r.artifacts, a)
	}
	for _, r := range out {
		same := func(a *served) bool { return slices.Equal(a.Tags(), r.artifacts[0].Tags()) }
		if !slices.ContainsFunc(r.artifacts, func(a *served) bool { return !same(a) }) {
			continue
		}
		inputs := make([]*series.Artifact, len(r.artifacts))
		for i, a := range r.artifacts {
			inputs[i] = a.Artifact
		}
		var err error
		if r.merger, err = series.NewMerger(inputs, !q.h.o.Strict); err != nil {
			return nil, err
		}
		r.names = make(map[uint32]string)
		for _, t := range r.merger.Tags() {
			r.names[t.ColumnID] = t.Name
		}
	}
	return out, nil
}

// name is the name that a tag of an artifact has in the region.
func (r *region) name(t series.Tag) string {
	if r.merger == nil {
		return t.Name
	}
	return r.names[t.ColumnID]
}

// inArtifact is an error of an artifact.
type inArtifact struct {
	error
	a *served
}

func (e *inArtifact) Unwrap() error { return e.error }

func in(a *served, err error) error {
	if err == nil {
		return nil
	}
	return &inArtifact{err, a}
}

// aroundManifest cuts the name of a manifest into what stands before and behind the names of the artifact's objects.
func aroundManifest(name string) (before, behind string) {
	i := strings.LastIndex(name, series.ManifestName)
	if i < 0 {
		return name, ""
	}
	return name[:i], name[i+len(series.ManifestName):]
}

// without leaves the artifact out that an error is a fault of, so that the others answer. It reports whether there is one.
func (q *query) without(err error) bool {
	if q.h.o.Strict {
		return false
	}
	for _, class := range []error{fault.Corrupt, fault.UnsupportedVersion, fault.Changed, fault.UnsupportedCodec, fault.NotFound} {
		if !errors.Is(err, class) {
			continue
		}
		var a *served
		if e, ok := errors.AsType[*inArtifact](err); ok {
			a = e.a
		} else if f, ok := errors.AsType[*fault.Error](err); ok {
			a = q.h.parts[f.Object]
		}
		if a == nil || q.excluded[a] {
			return false
		}
		text := leftOut(err)
		q.excluded[a] = true
		q.left = append(q.left, text)
		// A column that nobody reads matters to who asks for it, and a file that is not there may come back.
		if class != fault.UnsupportedCodec && class != fault.NotFound {
			a.fault.CompareAndSwap(nil, &text)
		}
		if q.h.o.Failed != nil && a.told.CompareAndSwap(false, true) {
			q.h.o.Failed(err)
		}
		return true
	}
	return false
}

func leftOut(err error) string { return clip("left out: " + err.Error()) }

// asked are the queries of a question for some artifacts: one for each selector that may select something there, and one
// for all series where there is no selector.
func (q *query) asked(artifacts ...*served) iter.Seq2[*series.Query, error] {
	return func(yield func(*series.Query, error) bool) {
		selectors := q.selectors
		if len(selectors) == 0 {
			selectors = []*selector{{}}
		}
		for _, s := range selectors {
			if err := q.ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			tables, err := q.tables(s, artifacts)
			if err != nil {
				yield(nil, err)
				return
			}
			if tables != nil && len(tables) == 0 {
				continue
			}
			if !yield(&series.Query{Matchers: s.matchers, Tables: tables, Memory: q.share()}, nil) {
				return
			}
		}
	}
}

// share is the half of the memory that is for reading; the other half is for what is remembered of the answer.
func (q *query) share() int64 { return max(1, q.h.o.Memory/2) }

// tables are those that the matchers of __name__ select, nil for all. A table whose name is not known has none.
func (q *query) tables(s *selector, artifacts []*served) ([]uint32, error) {
	if len(s.names) == 0 {
		return nil, nil
	}
	tables := []uint32{}
	if !s.takes("") {
		n := 0
		for id, name := range q.h.o.Names {
			if n++; n%128 == 0 && q.ctx.Err() != nil {
				return nil, q.ctx.Err()
			}
			if s.takes(name) {
				tables = append(tables, id)
			}
		}
		return tables, nil
	}
	for _, a := range artifacts {
		all, err := a.Tables(q.ctx, &series.Query{Memory: q.share()})
		if err != nil {
			return nil, in(a, err)
		}
		for _, id := range all {
			if s.takes(q.h.o.Names[id]) {
				tables = append(tables, id)
			}
		}
	}
	return tables, nil
}

// hold counts bytes that are remembered until the answer is complete.
func (q *query) hold(n int64) error {
	if q.held += n; q.held > q.share() {
		return fault.New(fault.Limit, "promapi", "memory of %d bytes: the answer is too long; a limit, or selectors that select less, make it shorter", q.h.o.Memory)
	}
	return nil
}

// keySize is what a key of a set takes, of 16 bytes, and as much again when the set grows.
const keySize = 48

// series answers with the sets of labels of series.
func (q *query) series(out *answer) error {
	if len(q.selectors) == 0 {
		return failed(badData, "no match[] parameter provided")
	}
	regions, err := q.regions()
	if err != nil {
		return err
	}
	seen := make(map[[16]byte]struct{})
	var text []byte
	n := 0
	for _, r := range regions {
		for record, err := range q.records(r) {
			if err != nil {
				return err
			}
			if n++; n%128 == 0 && q.ctx.Err() != nil {
				return q.ctx.Err()
			}
			if text, err = q.appendLabels(text[:0], record); err != nil {
				return err
			}
			// The text is one of its set of labels alone, and the hash of it is one that nobody finds a second text for.
			sum := sha256.Sum256(text)
			key := [16]byte(sum[:])
			if _, ok := seen[key]; ok {
				continue
			}
			if q.limit > 0 && len(seen) == q.limit {
				q.warnings = append(q.warnings, truncated)
				return nil
			}
			seen[key] = struct{}{}
			if err := q.hold(keySize); err != nil {
				return err
			}
			if err := out.add(text); err != nil {
				return err
			}
		}
		if r.merger != nil && r.merger.Conflicts() > 0 {
			q.warnings = append(q.warnings, "series that have other labels in a later artifact are given with those of the earliest")
		}
	}
	return nil
}

// records are the series of a region that are asked for.
func (q *query) records(r *region) iter.Seq2[series.Record, error] {
	return func(yield func(series.Record, error) bool) {
		if r.merger != nil {
			for ask, err := range q.asked(r.artifacts...) {
				if err != nil {
					yield(series.Record{}, err)
					return
				}
				for record, err := range r.merger.Select(q.ctx, ask) {
					if !yield(record, err) || err != nil {
						return
					}
				}
			}
			return
		}
		for _, a := range r.artifacts {
			for ask, err := range q.asked(a) {
				if err != nil {
					yield(series.Record{}, err)
					return
				}
				for record, err := range a.Select(q.ctx, ask) {
					if !yield(record, in(a, err)) || err != nil {
						return
					}
				}
			}
		}
	}
}

// appendLabels appends the labels of a series as a JSON object, in the order of their names.
func (q *query) appendLabels(dst []byte, r series.Record) ([]byte, error) {
	labels := r.Labels
	if name := q.h.o.Names[r.Table]; name != "" {
		labels = append(labels, series.Label{Name: promql.MetricName, Value: name})
	}
	slices.SortFunc(labels, func(a, b series.Label) int { return cmp.Compare(a.Name, b.Name) })
	dst = append(dst, '{')
	var err error
	for i, l := range labels {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendText(dst, l.Name); err != nil {
			return dst, err
		}
		dst = append(dst, ':')
		if dst, err = appendText(dst, l.Value); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// names answers with the names of the labels.
func (q *query) names(out *answer) error {
	regions, err := q.regions()
	if err != nil {
		return err
	}
	found := make(map[string]struct{})
	for _, r := range regions {
		for _, a := range r.artifacts {
			for ask, err := range q.asked(a) {
				if err != nil {
					return err
				}
				if err := q.namesOf(r, a, ask, found); err != nil {
					return in(a, err)
				}
			}
		}
	}
	return q.list(found, out)
}

func (q *query) namesOf(r *region, a *served, ask *series.Query, found map[string]struct{}) error {
	names, err := a.LabelNames(q.ctx, ask)
	if err != nil {
		return err
	}
	for _, t := range a.Tags() { // in whose order the names are
		if len(names) > 0 && names[0] == t.Name {
			found[r.name(t)] = struct{}{}
			names = names[1:]
		}
	}
	if _, ok := found[promql.MetricName]; ok || len(q.h.o.Names) == 0 {
		return nil
	}
	tables, err := a.Tables(q.ctx, ask)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(tables, func(id uint32) bool { return q.h.o.Names[id] != "" }) {
		found[promql.MetricName] = struct{}{}
	}
	return nil
}

// values answers with the values of a label.
func (q *query) values(out *answer) error {
	regions, err := q.regions()
	if err != nil {
		return err
	}
	if q.label == promql.MetricName && q.h.o.Names == nil {
		q.infos = append(q.infos, "metrics are tables, whose names stand in no artifact, and no list of them was given (--tables)")
		return nil
	}
	found := make(map[string]struct{})
	for _, r := range regions {
		for _, a := range r.artifacts {
			for ask, err := range q.asked(a) {
				if err != nil {
					return err
				}
				values, err := q.valuesOf(r, a, ask)
				if err != nil {
					return in(a, err)
				}
				for _, v := range values {
					if _, ok := found[v]; ok {
						continue
					}
					found[v] = struct{}{}
					if err := q.hold(int64(len(v)) + 2*keySize); err != nil {
						return err
					}
				}
			}
		}
	}
	return q.list(found, out)
}

func (q *query) valuesOf(r *region, a *served, ask *series.Query) ([]string, error) {
	if q.label == promql.MetricName {
		tables, err := a.Tables(q.ctx, ask)
		var names []string
		for _, id := range tables {
			if name := q.h.o.Names[id]; name != "" {
				names = append(names, name)
			}
		}
		return names, err
	}
	for _, t := range a.Tags() {
		if r.name(t) == q.label {
			return a.LabelValues(q.ctx, t.Name, ask)
		}
	}
	return nil, nil
}

// list answers with texts, sorted.
func (q *query) list(found map[string]struct{}, out *answer) error {
	texts := slices.Sorted(maps.Keys(found))
	if q.limit > 0 && len(texts) > q.limit {
		texts = texts[:q.limit]
		q.warnings = append(q.warnings, truncated)
	}
	var text []byte
	var err error
	for _, t := range texts {
		if text, err = appendText(text[:0], t); err != nil {
			return err
		}
		if err := out.add(text); err != nil {
			return err
		}
	}
	return nil
}
