// Package doccheck holds tests of the documents: what code comments and links refer to exists, and the examples of the
// format pages are what the code makes.
package doccheck
