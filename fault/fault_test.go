package fault

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func TestError(t *testing.T) {
	for _, c := range []struct {
		err  *Error
		text string
	}{
		{New(Corrupt, "msglc", "leaf ends at %#x", 0x1f3), "msglc: leaf ends at 0x1f3"},
		{New(Corrupt, "msglc", "leaf").In("run.msg").On("runs/3").At(0x5123), "msglc: run.msg: runs/3: leaf (offset 0x5123)"},
		{New(Corrupt, "value", "head").At(0), "value: head (offset 0x0)"},
		{New(nil, "", "").In("a.msg").Because(io.ErrUnexpectedEOF), "a.msg: input ends early"},
		{New(Limit, "msglc", "read").Because(errors.New("two\nlines")), `msglc: read: two\u000alines`},
		{New(Conflict, "value", "key\x7f").In("a\u2028b").On("\x1b[2J"), `value: a\u2028b: \u001b[2J: key\u007f`},
	} {
		got := c.err.Error()
		if got != c.text {
			t.Errorf("%s\nwant %s", got, c.text)
		}
		if strings.ContainsAny(got, "\r\n\u2028\u2029") {
			t.Errorf("%q is more than one line", got)
		}
	}
}

func TestIs(t *testing.T) {
	err := error(New(Corrupt, "value", "head").Because(io.ErrUnexpectedEOF))
	for class, want := range map[error]bool{Corrupt: true, io.ErrUnexpectedEOF: true, Limit: false, io.EOF: false} {
		if errors.Is(err, class) != want {
			t.Errorf("is %v: %t", class, !want)
		}
	}
	if got := New(nil, "", "").Unwrap(); len(got) != 0 {
		t.Errorf("an error without class and cause has %v in it", got)
	}
}

func TestPlace(t *testing.T) {
	plain := errors.New("plain")
	inner := New(Corrupt, "value", "head").At(5)
	for _, c := range []struct {
		what string
		got  error
		text string
	}{
		{"Locate", Locate(inner, "run.msg", "runs/3", 100), "value: run.msg: runs/3: head (offset 0x69)"},
		{"Locate, in a tree", Locate(errors.Join(inner), "run.msg", "", 0), "value: run.msg: head (offset 0x5)"},
		{"Locate, the place is known", Locate(New(Corrupt, "value", "head").On("1"), "run.msg", "2", 7), "value: run.msg: 1: head"},
		{"Locate, the object is known", Locate(New(Corrupt, "value", "head").In("a").At(5), "b", "2", 7), "value: a: head (offset 0x5)"},
		{"Locate, another error", Locate(plain, "run.msg", "runs/3", 100), "plain"},
		{"Shift", Shift(inner, 100), "value: head (offset 0x69)"},
		{"Shift by 0", Shift(inner, 0), "value: head (offset 0x5)"},
		{"Shift, no offset", Shift(New(Corrupt, "value", "head"), 7), "value: head"},
		{"Shift, another error", Shift(plain, 7), "plain"},
	} {
		if got := c.got.Error(); got != c.text {
			t.Errorf("%s: %s\nwant %s", c.what, got, c.text)
		}
	}
	if inner.Offset != 5 || inner.Object != "" {
		t.Errorf("the error itself was changed: %v", inner)
	}
	if Locate(nil, "run.msg", "", 0) != nil || Shift(nil, 7) != nil {
		t.Error("no error became one")
	}
}

func TestShort(t *testing.T) {
	for n, want := range map[Short]string{
		0: "p: input ends (offset 0x7)", 1: "p: input ends: at least 1 more byte expected (offset 0x7)", 5: "p: input ends: at least 5 more bytes expected (offset 0x7)",
	} {
		err := error(New(Corrupt, "p", "input ends").At(7).Because(n))
		if err.Error() != want || !errors.Is(err, io.ErrUnexpectedEOF) || !errors.Is(err, Corrupt) || errors.Is(err, io.EOF) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
