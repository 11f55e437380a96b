// Package httprange reads objects by http and https, with ranges (RFC 9110, section 14).
//
// [OpenURL] is all that most programs need. What it does to be right and to be fast is that of package remote; this package
// sends the requests: it asks for the bytes as they are stored, follows redirects with the range, and keeps credentials to
// the host that they are for.
//
// The version of an object is its ETag, or, without one, its Last-Modified. A strong ETag is sent as If-Match, a
// Last-Modified as If-Unmodified-Since; a weak ETag is only compared with that of each answer.
//
// Names and passwords in a URL are sent by basic authentication, and shown nowhere. Names of objects, and so messages, have
// a URL without them, and without the values of its query, which may be signatures.
//
// Objects and clients are safe for concurrent use.
package httprange
