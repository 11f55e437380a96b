// Package store holds what the packages of object stores have in common: URLs, answers of HTTP as package remote wants them,
// and errors that name the object and hold no secret.
package store

import (
	"strings"

	"github.com/spilehq/spile/fault"
)

// Split cuts a URL scheme://place/key in its parts. The key is taken as it stands, as the tools of the stores do: nothing in
// it is decoded, and it may hold any character. An empty key is allowed, for prefixes. The authority must not hold
// credentials; a URL that seems to is refused without being repeated.
func Split(pkg, scheme, url string) (place, key string, err error) {
	rest, ok := strings.CutPrefix(url, scheme+"://")
	if !ok {
		return "", "", fault.New(fault.Invalid, pkg, "is no URL of the form %s://…", scheme).In(Redacted(url))
	}
	place, key, _ = strings.Cut(rest, "/")
	switch {
	case Redacted(url) != url:
		return "", "", fault.New(fault.Invalid, pkg, "a URL must not hold credentials: they come from the environment").In(Redacted(url))
	case place == "":
		return "", "", fault.New(fault.Invalid, pkg, "the URL names no bucket").In(url)
	}
	return place, key, nil
}

// Redacted is a URL without what may be a secret: a user name and a password, a signature of a URL that grants access.
func Redacted(url string) string {
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

// Yes reports whether the value of a variable of the environment turns something on.
func Yes(s string) bool {
	switch strings.ToLower(s) {
	case "1", "y", "yes", "t", "true", "on":
		return true
	}
	return false
}
