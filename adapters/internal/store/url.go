// Package store holds what the packages of object stores have in common: URLs, answers of HTTP as package remote wants them,
// and errors that name the object and hold no secret.
package store

import (
	"strings"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/internal/secret"
)

// Split cuts a URL scheme://place/key in its parts. The key is taken as it stands, as the tools of the stores do: nothing in
// it is decoded, and it may hold any character. An empty key is allowed, for prefixes. The authority must not hold
// credentials; a URL that seems to is refused without being repeated.
func Split(pkg, scheme, url string) (place, key string, err error) {
	rest, ok := strings.CutPrefix(url, scheme+"://")
	if !ok {
		return "", "", fault.New(fault.Invalid, pkg, "is no URL of the form %s://…", scheme).In(secret.URL(url))
	}
	place, key, _ = strings.Cut(rest, "/")
	switch {
	case secret.URL(url) != url:
		return "", "", fault.New(fault.Invalid, pkg, "a URL must not hold credentials: they come from the environment").In(secret.URL(url))
	case place == "":
		return "", "", fault.New(fault.Invalid, pkg, "the URL names no bucket").In(url)
	}
	return place, key, nil
}

// Yes reports whether the value of a variable of the environment turns something on.
func Yes(s string) bool {
	switch strings.ToLower(s) {
	case "1", "y", "yes", "t", "true", "on":
		return true
	}
	return false
}
