package promapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/value"
)

// The types of errors of the API, and their codes.
const (
	badData   = "bad_data"
	execution = "execution"
	timeout   = "timeout"
	canceled  = "canceled"
	notFound  = "not_found"
	internal  = "internal"
)

var codes = map[string]int{
	badData: http.StatusBadRequest, execution: http.StatusUnprocessableEntity, timeout: http.StatusServiceUnavailable,
	canceled: http.StatusServiceUnavailable, notFound: http.StatusNotFound, internal: http.StatusInternalServerError,
}

// apiError is an error as the API has it.
type apiError struct {
	kind string
	code int
	text string
}

func (e *apiError) Error() string { return e.text }

func failed(kind, format string, args ...any) *apiError {
	return &apiError{kind, codes[kind], clip(fmt.Sprintf(format, args...))}
}

// clip is a text without its end where it is longer than any that is read: parameters may be.
func clip(text string) string {
	const most = 4096
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " …"
}

// classify finds the type of an error.
func (h *Handler) classify(ctx context.Context, err error) *apiError {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e
	}
	switch {
	case context.Cause(ctx) == errTimeout:
		return failed(timeout, "the request took longer than %v", h.o.Timeout)
	case ctx.Err() != nil:
		return failed(canceled, "the request was canceled")
	case errors.Is(err, fault.Limit), errors.Is(err, fault.Conflict), errors.Is(err, fault.UnsupportedCodec):
		return failed(execution, "%s", err)
	}
	return failed(internal, "%s", err)
}

func writeError(w http.ResponseWriter, err error) {
	e, ok := errors.AsType[*apiError](err)
	if !ok {
		e = failed(internal, "%s", err)
	}
	writeJSON(w, e.code, map[string]string{"status": "error", "errorType": e.kind, "error": e.text})
}

// writeJSON sends a short answer. A client that is gone does not want it.
func writeJSON(w http.ResponseWriter, code int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // of maps of texts
	}
	header(w, len(text))
	w.WriteHeader(code)
	_, _ = w.Write(text)
}

func header(w http.ResponseWriter, length int) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if length >= 0 {
		w.Header().Set("Content-Length", strconv.Itoa(length))
	}
}

func buildInfo(version string) map[string]string {
	return map[string]string{
		"version": version, "revision": "", "branch": "", "buildUser": "", "buildDate": "", "goVersion": runtime.Version(),
		"application": "Spile",
	}
}

// An answer of up to holdBack is sent when it is complete: an error before that is an error of the API, with its code.
// Beyond it is sent piece by piece.
const (
	holdBack = 1 << 20
	piece    = 64 << 10
)

// answer is a list that is sent as the data of the envelope.
type answer struct {
	w    http.ResponseWriter
	buf  []byte
	any  bool // there is an element
	sent bool // some of it
}

func newAnswer(w http.ResponseWriter) *answer {
	return &answer{w: w, buf: []byte(`{"status":"success","data":[`)}
}

// add adds an element, JSON text.
func (a *answer) add(text []byte) error {
	if a.any {
		a.buf = append(a.buf, ',')
	}
	a.any = true
	a.buf = append(a.buf, text...)
	if len(a.buf) < piece || !a.sent && len(a.buf) < holdBack {
		return nil
	}
	if !a.sent {
		header(a.w, -1)
	}
	a.sent = true
	_, err := a.w.Write(a.buf)
	a.buf = a.buf[:0]
	return err
}

// end sends what is left. Some warnings stand for many.
func (a *answer) end(warnings, infos []string) error {
	a.buf = append(a.buf, ']')
	for _, list := range []struct {
		name  string
		texts []string
	}{{"warnings", warnings}, {"infos", infos}} {
		if len(list.texts) == 0 {
			continue
		}
		const most = 10
		texts := list.texts
		if n := len(texts) - most; n > 0 {
			// The last ones are about this answer, the first ones about all.
			texts = append([]string{fmt.Sprintf("%d more %s", n, list.name)}, texts[n:]...)
		}
		text, err := json.Marshal(texts)
		if err != nil {
			return err
		}
		a.buf = append(append(append(append(a.buf, `,"`...), list.name...), `":`...), text...)
	}
	a.buf = append(a.buf, '}')
	if !a.sent {
		header(a.w, len(a.buf))
	}
	a.sent = true
	_, err := a.w.Write(a.buf)
	return err
}

// appendText appends a text as JSON.
func appendText(dst []byte, text string) ([]byte, error) {
	dst, _, err := value.AppendJSONString(dst, text, nil)
	return dst, err
}
