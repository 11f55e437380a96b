package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/series"
	"github.com/spilehq/spile/source/remote"
)

// artifactTarget is where a verb writes an artifact.
type artifactTarget interface {
	series.Target
	// Dir is the folder of the artifact, or its URL.
	Dir() string
	// CreateBeside begins a file beside it, whose name is that of Dir with suffix behind it.
	CreateBeside(ctx context.Context, suffix string) (series.Output, error)
}

// artifactTarget returns the target for an artifact below the folder, or the URL, that -o names. When there is an artifact
// already, that is a conflict, which is worth knowing before the work. Discard ends what the target keeps from others.
func (e *env) artifactTarget(ctx context.Context, output string, region uint64, generation series.UUID, partBytes int64) (artifactTarget, error) {
	if !isURL(output) {
		output, err := localPath(output)
		if err != nil {
			return nil, err
		}
		t := series.NewFolderTarget(output, region, generation)
		return t, t.Begin()
	}
	if isHTTP(output) {
		return nil, usagef("%s: nothing is written over HTTP", shown(output))
	}
	at, err := e.storeOf(ctx, output)
	if err != nil {
		return nil, err
	}
	t := &storeTarget{env: e, ctx: ctx, at: at, partBytes: partBytes,
		dir: fmt.Sprintf("%s/%d/series/%s/", strings.TrimRight(output, "/"), region, generation)}
	switch there, err := t.read(ctx, series.ManifestName, 1); {
	case errors.Is(err, fs.ErrPermission): // who may write need not be allowed to read; nothing is replaced in any case
	case err != nil:
		return nil, err
	case there != nil:
		return nil, usedGeneration(t.Dir())
	}
	return t, nil
}

func usedGeneration(dir string) error {
	return fault.New(fault.Conflict, "", "holds an artifact already, and a generation is used once").In(dir)
}

// storeTarget writes an artifact into a store. It makes every object anew and replaces none, so what it removes after a failure
// is its own: a part that is there is of another run, which may be writing, or was killed.
type storeTarget struct {
	*env
	ctx       context.Context
	at        store
	dir       string // a URL with a slash at the end
	partBytes int64
	made      []*remote.Writer // the manifest is the last
	unclear   bool             // nobody knows whether there is a manifest
}

func (t *storeTarget) Dir() string { return strings.TrimSuffix(t.dir, "/") }

// Create begins an object. The context is that of its upload.
func (t *storeTarget) Create(ctx context.Context, name string) (series.Output, error) {
	o := &remote.WriteOptions{NoOverwrite: true}
	if name != series.ManifestName {
		o.Size = t.partBytes
	}
	w, err := t.at.Create(ctx, t.dir+name, o)
	if err != nil {
		return nil, t.explained(name, err)
	}
	return &storedPart{t: t, ctx: ctx, w: w, name: name}, nil
}

// explained says what it means that an object is there.
func (t *storeTarget) explained(name string, err error) error {
	switch {
	case !errors.Is(err, fault.Conflict), strings.HasPrefix(name, "."): // the latter lies beside the artifact
		return err
	case name == series.ManifestName:
		return usedGeneration(t.Dir())
	}
	return fault.New(fault.Conflict, "", "is there without a manifest: another run writes this generation, or one was killed; "+
		"take another generation, or remove what is left of it").In(t.dir + name)
}

// storedPart is an object of an artifact on its way to a store.
type storedPart struct {
	t    *storeTarget
	ctx  context.Context
	w    *remote.Writer
	name string
	text []byte // of the manifest
}

func (p *storedPart) Write(b []byte) (int, error) {
	if p.name == series.ManifestName {
		p.text = append(p.text, b...)
	}
	return p.w.Write(b)
}

func (p *storedPart) Commit() error {
	err := p.w.Commit(p.ctx)
	if err == nil {
		p.t.made = append(p.t.made, p.w)
		return nil
	}
	if p.name == series.ManifestName && p.t.published(p.text) {
		return nil
	}
	return p.t.explained(p.name, err)
}

func (p *storedPart) Abort() { p.t.discard(p.ctx, p.w) }

// published reports whether the manifest is in its place although the request for it has failed: the store may have made it and
// the answer been lost. While that is not known, parts stay.
func (t *storeTarget) published(text []byte) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), 10*time.Second)
	defer cancel()
	there, err := t.read(ctx, series.ManifestName, int64(len(text))+1)
	t.unclear = err != nil
	return err == nil && bytes.Equal(there, text)
}

// read reads up to n bytes of the beginning of an object; nil when there is none.
func (t *storeTarget) read(ctx context.Context, name string, n int64) ([]byte, error) {
	g, err := t.at.Getter(t.dir + name)
	if err != nil {
		return nil, err
	}
	obj, err := remote.Open(ctx, g, &remote.Options{Head: n, ReadAhead: -1})
	switch {
	case errors.Is(err, fault.NotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	defer obj.Close()
	p := make([]byte, min(n, obj.Size()))
	return p, obj.ReadAt(ctx, p, 0)
}

// Discard removes the objects that were made, the manifest first: without it the parts are nobody's. It works also when the run
// was asked to end.
func (t *storeTarget) Discard() error {
	made := t.made
	t.made = nil
	if t.unclear && len(made) > 0 {
		t.say("%s: it is not known whether the store has made the manifest, so the parts stay; without a manifest they are of no use", t.Dir())
		return nil
	}
	for i := len(made) - 1; i >= 0; i-- {
		if err := made[i].Remove(t.ctx); err != nil {
			t.say("%s; %d objects are left", message(err), i+1)
			return err
		}
	}
	return nil
}

// CreateBeside begins an object beside those of the artifact.
func (t *storeTarget) CreateBeside(ctx context.Context, suffix string) (series.Output, error) {
	w, err := t.at.Create(ctx, t.Dir()+suffix, &remote.WriteOptions{NoOverwrite: true})
	if err != nil {
		return nil, err
	}
	return &storedPart{t: t, ctx: ctx, w: w, name: suffix}, nil
}

// beside writes a file beside the folder of an artifact.
func (e *env) beside(ctx context.Context, t artifactTarget, suffix string, fill func(io.Writer) error) error {
	out, err := t.CreateBeside(ctx, suffix)
	if err != nil {
		return err
	}
	defer out.Abort()
	if err := fill(out); err != nil {
		return err
	}
	return out.Commit()
}
