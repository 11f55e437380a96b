package secret

import (
	"bufio"
	"errors"
	"net/http"
	"strings"
	"testing"
)

func TestURL(t *testing.T) {
	for url, want := range map[string]string{
		"s3://bucket/key":                                      "s3://bucket/key",
		"s3://bucket/key?versionId=1":                          "s3://bucket/key?versionId=1",
		"s3://bucket/key?X-Amz-Date=1&X-Amz-Signature=hidden":  "s3://bucket/key?…",
		"s3://key:hidden@bucket/key@1":                         "s3://…@bucket/key@1",
		"azblob://a.example/box/key?sv=1&SIG=hidden":           "azblob://a.example/box/key?…",
		"gs://bucket/[ab]*?X-Goog-Signature=hidden":            "gs://bucket/[ab]*?…",
		"gs://user@bucket":                                     "gs://…@bucket",
		"a/b?sig=1":                                            "a/b?sig=1",
		"s3://bucket/what?design=1":                            "s3://bucket/what?design=1",
		"s3://bucket/key?AWSAccessKeyId=hidden&Expires=1":      "s3://bucket/key?…",
		"s3://bucket/key?Expires=1&Signature=hidden#something": "s3://bucket/key?…",
	} {
		if got := URL(url); got != want {
			t.Errorf("%s is shown as %s, expected %s", url, got, want)
		}
	}
}

// TestAnswer: what the standard library says of a header that it cannot read repeats it.
func TestAnswer(t *testing.T) {
	_, err := http.ReadResponse(bufio.NewReader(strings.NewReader("HTTP/1.1 302 Found\r\nLocation: http://a.example/?sig=hidden\x01\r\n\r\n")), nil)
	if err == nil || !strings.Contains(err.Error(), "hidden") {
		t.Fatalf("%v does not repeat the header", err)
	}
	if got := Answer(err); got != errHeader {
		t.Errorf("%v", got)
	}
	other := errors.New("connection refused")
	if got := Answer(other); got != other {
		t.Errorf("%v", got)
	}
}
