//go:build !purego

package box

import "unsafe"

// Text gives bytes as a string, in their memory: who uses it, or a part of it, when the bytes have changed sees what is
// there then.
func Text(p []byte) string { return unsafe.String(unsafe.SliceData(p), len(p)) }
