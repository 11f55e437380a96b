module github.com/spilehq/spile

go 1.26.0

require (
	github.com/cespare/xxhash/v2 v2.3.0
	github.com/fxamacker/cbor/v2 v2.10.0
	github.com/google/go-cmp v0.7.0
	github.com/tinylib/msgp v1.6.5
	go.uber.org/goleak v1.3.0
	golang.org/x/crypto v0.59.0
	golang.org/x/sync v0.25.0
	golang.org/x/sys v0.50.0
	pgregory.net/rapid v1.3.0
)

require github.com/klauspost/compress v1.20.4

require (
	github.com/go-json-experiment/json v1.27.2
	github.com/philhofer/fwd v1.2.0 // indirect
	github.com/x448/float16 v0.8.4 // indirect
)
