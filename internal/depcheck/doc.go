// Package depcheck holds the tests of who may depend on whom: every package keeps to its list, and every module that is
// linked has a licence that allows it. ARCHITECTURE.md, "Dependencies", gives the reasons.
package depcheck
