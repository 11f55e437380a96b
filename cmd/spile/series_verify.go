package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/series"
)

// verified are the files to verify: in place of a folder with many artifacts below it, these.
func (e *env) verified(ctx context.Context, files []string) (out []string, err error) {
	for _, file := range files {
		if folderURL(file) && !isHTTP(file) && !isPattern(file) {
			n := len(out)
			for name, err := range e.artifactsIn(ctx, file) {
				if err != nil {
					return nil, err
				}
				out = append(out, name)
			}
			if len(out) == n { // the error says so
				out = append(out, file)
			}
			continue
		}
		dir, ok := folder(file)
		if !ok {
			out = append(out, file)
			continue
		}
		dirs := artifactsBelow(dir)
		if len(dirs) == 0 { // the error says so
			out = append(out, file)
			continue
		}
		for _, d := range dirs {
			if d == filepath.Clean(dir) {
				d = file // as it was given
			}
			out = append(out, d)
		}
	}
	return out, nil
}

// noteParts notes the folders below folders that hold parts and no manifest: what was never finished is no artifact, and is
// not removed either.
func (e *env) noteParts(files []string) {
	for _, file := range files {
		dir, ok := folder(file)
		if !ok {
			continue
		}
		dirs := artifactsBelow(dir)
		for _, d := range partsBelow(dir) {
			if len(dirs) > 0 && !slices.Contains(dirs, d) {
				e.say("note: %s: parts without %s, which belong to no artifact", d, series.ManifestName)
			}
		}
	}
}

// partsBelow lists the folders below a folder that hold parts, in the order of their names.
func partsBelow(root string) (dirs []string) {
	filepath.WalkDir(root+string(filepath.Separator), func(path string, d fs.DirEntry, err error) error { // which follows a link
		if err != nil || d.IsDir() {
			return nil // what cannot be read holds none
		}
		name, isPart := strings.CutSuffix(d.Name(), ".series")
		if _, ok := partStep(name); ok && isPart && (len(dirs) == 0 || dirs[len(dirs)-1] != filepath.Dir(path)) {
			dirs = append(dirs, filepath.Dir(path))
		}
		return nil
	})
	return dirs
}

// seriesFault is the fault of an artifact that err is.
func seriesFault(err error) (*fault.Error, bool) {
	if f, ok := dataFault(err); ok {
		return f, true
	}
	if series.Check(err) == 0 {
		return nil, false
	}
	return errors.AsType[*fault.Error](err)
}

// artifactVerify reports what is wrong with an artifact.
func (e *env) artifactVerify(ctx context.Context, a *artifact, deep bool, findings *int, report func(finding)) error {
	o := &series.VerifyOptions{Full: deep}
	found := func(f series.Finding) {
		line := newSeriesFinding(f)
		switch {
		case f.Warning:
			line.Class = "warning"
			e.say("note: %s", line.line(a.dir))
			return
		case f.Undecodable:
			e.partial = true
		default:
			*findings++
		}
		report(line)
	}
	if a.dir == "" {
		return series.VerifyPart(ctx, a.first, o, found)
	}
	if known := a.options(); known != nil {
		o.Options = *known
	}
	if isHTTP(a.url) { // a server of files says nothing of what else it has
		return series.Verify(ctx, a.open, o, found)
	}
	if a.url != "" {
		dir := beside(a.url, "")
		o.List = func(ctx context.Context) (names []string, err error) {
			for entry, err := range e.list(ctx, dir) {
				if err != nil {
					return nil, err
				}
				names = append(names, strings.TrimPrefix(entry.Name, dir))
			}
			return names, nil
		}
		return series.Verify(ctx, a.open, o, found)
	}
	o.List = func(context.Context) ([]string, error) {
		entries, err := os.ReadDir(a.dir)
		if err != nil {
			return nil, fault.New(nil, "", "").In(a.dir).Because(bare(err))
		}
		names := make([]string, len(entries))
		for i, entry := range entries {
			names[i] = entry.Name()
		}
		return names, nil
	}
	return series.Verify(ctx, a.open, o, found)
}

// newSeriesFinding is a finding with the number of its check beside the message.
func newSeriesFinding(f series.Finding) finding {
	line := newFinding(f.Err)
	line.Object, line.Check = f.Err.Object, f.Check
	if _, rest, ok := strings.Cut(line.Msg, ": "); ok && f.Check > 0 {
		line.Msg = rest
	}
	return line
}
