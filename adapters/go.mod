module github.com/spilehq/spile/adapters

go 1.26.0

require (
	github.com/itchyny/gojq v0.12.20
	github.com/spilehq/spile v0.0.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/itchyny/timefmt-go v0.1.9 // indirect
	golang.org/x/sync v0.25.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

replace github.com/spilehq/spile => ..
