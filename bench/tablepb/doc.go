// Package tablepb has the rows of the tables that bench measures as Protocol Buffers, with the code that protoc-gen-go
// makes of them: tables.pb.go. No protoc is needed to make it anew: generate.go writes down the descriptors and calls
// the generator as a library.
package tablepb

//go:generate go run generate.go
