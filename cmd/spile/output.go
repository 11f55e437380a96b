package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/msglc"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/value"
)

// stdout is standard output. Its first error stays: what comes behind a gap would be a wrong result. A write ends with
// the context, also when the reader of a pipe sleeps.
type stdout struct {
	ctx context.Context
	w   io.Writer
	err error
}

func (s *stdout) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	go func() {
		n, err := s.w.Write(p) // after a write that was given up nobody changes p: err stays
		done <- result{n, err}
	}()
	select {
	case <-s.ctx.Done():
		s.err = s.ctx.Err()
		return 0, s.err
	case r := <-done:
		switch {
		case r.err == nil:
		case errors.Is(r.err, syscall.EPIPE):
			s.err = errReaderLeft
		default:
			s.err = fault.New(nil, "", "").In("standard output").Because(bare(r.err))
		}
		return r.n, s.err
	}
}

// jsonFlags say how values are printed.
type jsonFlags struct {
	value.JSONOptions
}

func (f *jsonFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&f.Pretty, "pretty", false, "indent the JSON")
	flags.Var(&choice[value.NonFiniteMode]{
		&f.NonFinite, []string{"error", "null", "string"},
		[]value.NonFiniteMode{value.NonFiniteError, value.NonFiniteNull, value.NonFiniteString},
	}, "non-finite", "what NaN and infinities become")
	flags.Var(&choice[value.UTF8Mode]{
		&f.InvalidUTF8, []string{"error", "replace"}, []value.UTF8Mode{value.UTF8Error, value.UTF8Replace},
	}, "invalid-utf8", "what text becomes that is not UTF-8")
	flags.Var(&choice[value.KeyMode]{
		&f.Keys, []string{"error", "string", "pairs"}, []value.KeyMode{value.KeysError, value.KeysString, value.KeysPairs},
	}, "keys", "what keys become that are not strings")
	flags.Var(&choice[value.DupMode]{
		&f.Dup, []string{"error", "first", "last", "all"},
		[]value.DupMode{value.DupError, value.DupFirst, value.DupLast, value.DupAll},
	}, "dup", "which pair stays when a key occurs twice in a map")
	flags.BoolVar(&f.Lossless, "lossless", false, "fail where JSON cannot keep something, instead of saying so")
}

// losses says on standard error what a conversion could not keep.
func (e *env) losses(name string, losses *value.Losses) {
	for loss := range losses.All() {
		e.say("%s: %s", name, loss)
	}
}

// printJSON prints a result as one JSON document.
func (e *env) printJSON(v any, out *tableFlags) error {
	enc := json.NewEncoder(e.out)
	enc.SetEscapeHTML(false)
	if out.pretty {
		enc.SetIndent("", "  ")
	}
	return enc.Encode(v)
}

// pathText is a path that get takes back, on one line whatever its keys hold.
func pathText(p msglc.Path) string {
	text := p.String()
	if isPlain(text) {
		return text
	}
	var b strings.Builder
	for _, step := range p {
		s := step.String()
		if !isPlain(s) { // a string key: other keys are JSON already
			s = "{" + quoted(s) + "}"
		}
		b.WriteByte('/')
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1"))
	}
	return b.String()
}

// isPlain reports whether s can be printed as it is.
func isPlain(s string) bool { return fault.OneLine(s) == s }

// marshal is v in JSON, with < and > as they are.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// quoted is s as JSON text without control characters.
func quoted(s string) string {
	text, _ := marshal(s)
	return fault.OneLine(string(text))
}

// output is what a verb writes. It appears under its name by Commit, complete, and leaves nothing behind otherwise.
type output interface {
	msglc.Target
	Commit(ctx context.Context) error
	Abort()
}

// create begins the output that -o names. Standard output, pipes and devices get the bytes at the end, since a document
// is not written in order.
func (e *env) create(ctx context.Context, path string) (output, error) {
	if isURL(path) {
		return e.createStored(ctx, path)
	}
	if path == "-" {
		return newSpooled(func(ctx context.Context, r io.Reader) error {
			_, err := io.Copy(e.stdout, r)
			return err
		})
	}
	path, err := localPath(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err == nil && info.Mode().IsRegular() && slices.ContainsFunc(e.inputs, func(in fs.FileInfo) bool { return os.SameFile(in, info) }) {
		return nil, usagef("%s is input and output: name another output", path)
	}
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return newSpooled(func(ctx context.Context, r io.Reader) error {
			f, err := source.CreateAtomic(path)
			if err != nil {
				return err
			}
			defer f.Abort()
			if _, err := io.Copy(f, r); err != nil {
				return err
			}
			return f.Commit()
		})
	}
	make := source.CreateAtomic
	if e.keep {
		make = source.CreateNew
	}
	f, err := make(path)
	if err != nil {
		return nil, err
	}
	return atomicOutput{f}, nil
}

// addNoOverwrite adds the flag of verbs that write an output.
func (e *env) addNoOverwrite(flags *pflag.FlagSet) {
	flags.BoolVar(&e.keep, "no-overwrite", false, "fail when there is something under the name of the output, instead of replacing it")
}

type atomicOutput struct{ *source.AtomicFile }

func (o atomicOutput) Commit(ctx context.Context) error {
	if err := ctx.Err(); err != nil { // a run that was asked to end makes no output
		return err
	}
	return o.AtomicFile.Commit()
}

// spooled is an output that is copied to its place when it is complete.
type spooled struct {
	*source.Temporary
	deliver func(context.Context, io.Reader) error
}

func newSpooled(deliver func(context.Context, io.Reader) error) (output, error) {
	t, err := source.CreateTemporary("")
	if err != nil {
		return nil, err
	}
	return &spooled{t, deliver}, nil
}

func (s *spooled) Commit(ctx context.Context) error {
	defer s.Close()
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := s.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return s.deliver(ctx, s.Temporary)
}

func (s *spooled) Abort() { s.Close() }

// write makes the output that -o names: by fill, whole, or not at all.
func (e *env) write(ctx context.Context, verb, path string, fill func(output) error) error {
	out, err := e.create(ctx, path)
	if err != nil {
		return err
	}
	defer out.Abort()
	defer e.progress(ctx, verb)()
	if err := fill(out); err != nil {
		return err
	}
	return out.Commit(ctx)
}
