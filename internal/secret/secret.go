// Package secret keeps what may grant access out of messages: of URLs, and of what a server has sent.
package secret

import (
	"errors"
	"net/textproto"
	"strings"
)

// URL is the URL of an object of a store without what may be a secret: a user name and a password, a signature that grants
// access.
func URL(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return url
	}
	place, key, slash := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(place, '@'); i >= 0 {
		place = "…@" + place[i+1:]
	}
	if i := strings.IndexByte(key, '?'); i >= 0 {
		query := strings.ToLower(key[i:])
		for _, name := range []string{"sig=", "x-amz-signature=", "x-amz-credential=", "x-goog-signature=", "awsaccesskeyid=", "signature="} {
			if strings.Contains(query, "?"+name) || strings.Contains(query, "&"+name) {
				key = key[:i] + "?…"
				break
			}
		}
	}
	url = scheme + "://" + place
	if slash {
		url += "/" + key
	}
	return url
}

var (
	errHeader   = errors.New("the answer has a header that cannot be read")
	errLocation = errors.New("the answer leads to no URL")
)

// Answer is the error of a request without the headers of the answer, which the client repeats when it cannot read them: one
// may be the place of a redirect, with a signature.
func Answer(err error) error {
	if _, ok := errors.AsType[textproto.ProtocolError](err); ok {
		return errHeader
	}
	if strings.HasPrefix(err.Error(), "failed to parse Location header") { // it has no type
		return errLocation
	}
	return err
}
