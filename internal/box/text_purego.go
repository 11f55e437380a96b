//go:build purego

package box

// Text gives bytes as a string.
func Text(p []byte) string { return string(p) }
