// Package apigolden lists the exported surface of the library and of the adapters in testdata, one file a package, so that
// a change of it is seen in a diff:
//
//	go test ./internal/apigolden -update
package apigolden
