package depcheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const spile = "github.com/spilehq/spile"

// allowed names, for each package that is no test, what it may depend on: packages of this repository without the module
// path, and modules. What a package of this repository may depend on comes with it. The standard library is free.
// Internal packages of tests have no entry.
var allowed = map[string][]string{
	"fault":             {},
	"internal/box":      {},
	"internal/scratch":  {},
	"internal/filelock": {"fault", "golang.org/x/sys"},
	"internal/secret":   {},
	"internal/wire":     {},
	"internal/keyset":   {"fault", "internal/scratch"},
	"source/diskcache":  {"source", "github.com/cespare/xxhash/v2"},
	"source":            {"fault", "internal/scratch", "golang.org/x/sync", "golang.org/x/sys"},
	"source/remote":     {"source"},
	"source/httprange":  {"source/remote", "internal/secret"},
	"value":             {"fault", "internal/box", "internal/keyset"},
	"msglc":             {"source", "value", "github.com/cespare/xxhash/v2"},
	"tcb":               {"source", "value", "internal/wire", "golang.org/x/crypto"},
	"series":            {"source", "value", "internal/filelock", "internal/wire", "github.com/cespare/xxhash/v2", "github.com/klauspost/compress"},

	"internal/rangetest":  {},
	"internal/toxic":      {},
	"internal/storetest":  {},
	"internal/tabletest":  {"tcb"},
	"internal/seriestest": {"series"},
	"internal/systems":    {},

	"adapters/jq":                {"msglc", "github.com/itchyny/gojq", "github.com/itchyny/timefmt-go"},
	"adapters/internal/columnar": {"tcb"},
	// The forms of files that tables and series have in common.
	"adapters/internal/csvtext": {"fault"},
	"adapters/internal/parquetfile": {
		"github.com/parquet-go/parquet-go", "github.com/parquet-go/bitpack",
		"github.com/parquet-go/jsonlite", "github.com/andybalholm/brotli", "github.com/google/uuid",
		"github.com/klauspost/compress", "github.com/pierrec/lz4/v4", "github.com/twpayne/go-geom", "google.golang.org/protobuf",
		"golang.org/x/sys",
	},
	"adapters/parquet": {"adapters/internal/columnar", "adapters/internal/parquetfile"},
	// Only arrow, array and ipc of arrow-go, and what these import: pqarrow, flight and compute bring gRPC and more.
	"adapters/arrowipc": {
		"adapters/internal/columnar", "golang.org/x/exp", "github.com/apache/arrow-go/v18", "github.com/goccy/go-json",
		"github.com/google/flatbuffers", "github.com/klauspost/compress", "github.com/klauspost/cpuid/v2",
		"github.com/pierrec/lz4/v4", "github.com/zeebo/xxh3",
	},

	"adapters/tabular":  {"tcb"},
	"adapters/csvtable": {"adapters/tabular", "adapters/internal/csvtext"},
	"adapters/jsonrows": {"adapters/tabular", "github.com/go-json-experiment/json"},
	"adapters/xlsx":     {"adapters/tabular", "github.com/xuri/nfp"},

	// The parser of selectors, and what its packages import: the metrics that it counts itself among them.
	"adapters/promql": {
		"series", "github.com/prometheus/prometheus", "github.com/prometheus/common", "github.com/prometheus/client_golang",
		"github.com/prometheus/client_model", "github.com/prometheus/procfs", "github.com/beorn7/perks", "github.com/dennwc/varint",
		"github.com/grafana/regexp", "github.com/munnerz/goautoneg", "go.uber.org/atomic", "golang.org/x/text", "google.golang.org/protobuf",
	},
	// The metrics of a server, by the library of Prometheus, which its parser links anyhow.
	"adapters/promapi":       {"adapters/promql"},
	"adapters/seriesjson":    {"series", "github.com/go-json-experiment/json"},
	"adapters/seriescsv":     {"series", "adapters/internal/csvtext"},
	"adapters/seriesparquet": {"series", "adapters/internal/parquetfile"},
	"adapters/seriesarrow": {
		"series", "golang.org/x/exp", "github.com/apache/arrow-go/v18", "github.com/goccy/go-json",
		"github.com/google/flatbuffers", "github.com/klauspost/cpuid/v2", "github.com/pierrec/lz4/v4", "github.com/zeebo/xxh3",
	},
	// Of the time series database of Prometheus index, chunks and chunkenc alone: the package tsdb brings the clients of
	// three clouds. Most of this the parser of selectors needs as well.
	"adapters/promtsdb": {
		"series", "github.com/prometheus/prometheus", "github.com/prometheus/common", "github.com/prometheus/client_golang",
		"github.com/prometheus/client_model", "github.com/prometheus/procfs", "github.com/beorn7/perks", "github.com/dennwc/varint",
		"github.com/grafana/regexp", "github.com/munnerz/goautoneg", "go.uber.org/atomic", "golang.org/x/text", "google.golang.org/protobuf",
		"github.com/bboreham/go-loser", "golang.org/x/exp",
	},

	"adapters/internal/store":      {"source/remote", "internal/secret"},
	"adapters/internal/storesuite": {"source/remote", "internal/storetest"},
	// A program of the tests.
	"adapters/internal/soak": {"adapters/s3", "source/diskcache", "msglc", "series", "internal/storetest", "internal/toxic"},
	// The client for S3, with what it checks and compresses, and the reader of its shared files. Neither Amazon's own nor gRPC.
	"adapters/s3": {
		"adapters/internal/store", "github.com/minio/minio-go/v7", "github.com/minio/md5-simd", "github.com/minio/crc64nvme", "github.com/cespare/xxhash/v2",
		"github.com/dustin/go-humanize", "github.com/google/uuid", "github.com/klauspost/compress", "github.com/klauspost/cpuid/v2",
		"github.com/klauspost/crc32", "github.com/philhofer/fwd", "github.com/rs/xid", "github.com/tinylib/msgp", "github.com/zeebo/xxh3",
		"go.yaml.in/yaml/v3", "golang.org/x/crypto", "golang.org/x/net", "golang.org/x/text", "gopkg.in/ini.v1",
	},
	// Tokens alone: the requests are our own.
	"adapters/gcs": {"adapters/internal/store", "golang.org/x/oauth2", "cloud.google.com/go/compute/metadata"},
	// The client for blobs, which can read lists in Arrow's form, and logins, which may open a browser.
	"adapters/azure": {
		"adapters/internal/store", "github.com/Azure/azure-sdk-for-go/sdk/azcore", "github.com/Azure/azure-sdk-for-go/sdk/azidentity",
		"github.com/Azure/azure-sdk-for-go/sdk/internal", "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob", "github.com/Azure/azure-sdk-for-go/sdk/storage/internal",
		"github.com/AzureAD/microsoft-authentication-library-for-go", "github.com/apache/arrow-go/v18", "github.com/goccy/go-json",
		"github.com/golang-jwt/jwt/v5", "github.com/google/flatbuffers", "github.com/google/uuid", "github.com/klauspost/compress",
		"github.com/klauspost/cpuid/v2", "github.com/kylelemons/godebug", "github.com/pierrec/lz4/v4", "github.com/pkg/browser", "github.com/zeebo/xxh3",
		"golang.org/x/crypto", "golang.org/x/exp", "golang.org/x/net", "golang.org/x/text",
	},

	"cmd/spile": {
		"internal/secret", "source/httprange", "source/diskcache", "adapters/s3", "adapters/gcs", "adapters/azure",
		"adapters/jq", "adapters/seriesjson", "adapters/promapi", "adapters/promql", "adapters/csvtable", "adapters/jsonrows", "adapters/xlsx", "adapters/parquet", "adapters/arrowipc",
		// Patterns of files and of objects of stores.
		"github.com/bmatcuk/doublestar/v4",
		"adapters/jq", "adapters/seriesjson", "adapters/seriescsv", "adapters/seriesparquet", "adapters/seriesarrow", "adapters/promtsdb", "adapters/promql", "adapters/csvtable", "adapters/jsonrows", "adapters/xlsx", "adapters/parquet", "adapters/arrowipc",
		// The command line, and the man pages that are made from it.
		"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/cpuguy83/go-md2man/v2",
		"github.com/russross/blackfriday/v2", "go.yaml.in/yaml/v3",
		// Progress bars.
		"github.com/vbauerster/mpb/v8", "github.com/vbauerster/cupwriter", "github.com/VividCortex/ewma",
		"github.com/acarl005/stripansi", "github.com/mattn/go-runewidth", "github.com/clipperhouse/uax29/v2",
		"golang.org/x/term",
	},
}

// whole is a list with what comes with it.
func whole(list []string) []string {
	var all []string
	for _, what := range list {
		all = append(all, what)
		all = append(all, whole(allowed[what])...)
	}
	return all
}

// bench, and what it compares with, is linked into nothing.
func isBench(path string) bool { return path == "bench" || strings.HasPrefix(path, "bench/") }

// pkg is what go list says of a package.
type pkg struct {
	ImportPath string
	Standard   bool
	ForTest    string
	Module     *module
	Deps       []string
	GoFiles    []string
}

type module struct {
	Path string
	Dir  string
	Main bool
}

// own returns the path of a package of this repository without the module path.
func (p *pkg) own() (string, bool) {
	if p.Module == nil || !p.Module.Main {
		return "", false
	}
	return strings.CutPrefix(p.ImportPath, spile+"/")
}

// TestMain looks at every file that go list looks at, so that a result that go test has kept is not taken for the one of
// other files.
func TestMain(m *testing.M) {
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == ".git":
			return fs.SkipDir
		case filepath.Ext(path) == ".go" || strings.HasPrefix(d.Name(), "go."):
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// list runs go list in the root of the repository: over the workspace, or, where there is none, over the library.
func list(t *testing.T, flags ...string) map[string]*pkg {
	t.Helper()
	pattern := "work"
	env := exec.Command("go", "env", "GOWORK")
	if out, err := env.Output(); err != nil || len(bytes.TrimSpace(out)) == 0 || string(bytes.TrimSpace(out)) == "off" {
		pattern = "./..."
	}
	cmd := exec.Command("go", slices.Concat([]string{"list", "-deps", "-json=ImportPath,Standard,ForTest,Module,Deps,GoFiles"}, flags, []string{pattern})...)
	cmd.Dir = "../.."
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal("go list: ", err)
	}
	packages := make(map[string]*pkg)
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages[p.ImportPath] = &p
	}
}

// TestDependencies holds every package to its list.
func TestDependencies(t *testing.T) {
	packages := list(t)
	for _, p := range packages {
		name, own := p.own()
		if !own || isBench(name) {
			continue
		}
		list, listed := allowed[name]
		may := whole(list)
		if !listed && len(p.GoFiles) > 0 && len(p.Deps) > 0 {
			t.Errorf("%s is not listed here, and depends on other packages", name)
			continue
		}
		used := make(map[string]bool)
		for _, path := range p.Deps {
			dep := packages[path]
			if dep == nil || dep.Standard {
				continue
			}
			what := dep.Module.Path
			if depName, own := dep.own(); own {
				if isBench(depName) {
					t.Errorf("%s depends on %s", name, depName)
				}
				what = depName
			}
			used[what] = true
			if !slices.Contains(may, what) {
				t.Errorf("%s depends on %s, which is not on its list", name, what)
			}
		}
		for _, what := range may {
			if !used[what] {
				t.Errorf("%s no longer depends on %s: shorten its list", name, what)
			}
		}
	}
}

// A licence is known by words that stand in its text and in no other.
var licences = []struct {
	name string
	text *regexp.Regexp
	test bool // allowed in tests only
}{
	{"Apache-2.0", words(`Apache License,? Version 2\.0`), false},
	{"MIT", words(`Permission is hereby granted, free of charge, to any person obtaining a copy`), false},
	{"BSD", words(`Redistribution and use in source and binary forms, with or without`), false},
	{"ISC", words(`Permission to use, copy, modify, and(/or)? distribute this software`), false},
	{"Unlicense", words(`free and unencumbered software released into the public domain`), false},
	{"MPL-2.0", words(`Mozilla Public License,? version 2\.0`), true},
}

// words compiles an expression in which a blank stands for any white space, and letters for both cases.
func words(text string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)` + strings.ReplaceAll(text, " ", `\s+`))
}

var (
	copyleft    = regexp.MustCompile(`(?i)GNU\s+(Lesser|Library|Affero)?\s*General\s+Public\s+License`)
	licenceFile = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying)([.-].*)?$`)
)

// TestLicences: what the library, the adapters and the command link is under a licence that asks for no more than a
// notice, and so is what the tests link, where the Mozilla licence is allowed too.
func TestLicences(t *testing.T) {
	linked := make(map[string]string) // module -> folder
	ships := shipped(t)
	for _, p := range list(t, "-test") {
		if p.Module != nil && !p.Module.Main {
			linked[p.Module.Path] = p.Module.Dir
		}
	}
	for path, dir := range linked {
		text := licenceText(t, path, dir)
		var names []string
		for _, l := range licences {
			if l.text.MatchString(text) && !(l.test && ships[path]) {
				names = append(names, l.name)
			}
		}
		switch {
		case copyleft.MatchString(text) && !slices.Contains(names, "MPL-2.0"): // whose text names the GNU licences
			t.Errorf("%s: a GNU licence", path)
		case names == nil && ships[path]:
			t.Errorf("%s: its licence is none that may be linked", path)
		case names == nil:
			t.Errorf("%s: its licence is none that tests may link", path)
		default:
			t.Log(path, strings.Join(names, ", "))
		}
	}
}

// shipped returns the modules that are linked into something other than tests and benchmarks.
func shipped(t *testing.T) map[string]bool {
	t.Helper()
	packages := list(t)
	modules := make(map[string]bool)
	for _, p := range packages {
		if name, own := p.own(); !own || isBench(name) {
			continue
		}
		for _, path := range p.Deps {
			if dep := packages[path]; dep != nil && dep.Module != nil && !dep.Module.Main {
				modules[dep.Module.Path] = true
			}
		}
	}
	return modules
}

// licenceText returns the text of the licence files of a module.
func licenceText(t *testing.T, path, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var text strings.Builder
	for _, e := range entries {
		if !e.Type().IsRegular() || !licenceFile.MatchString(e.Name()) {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		text.Write(b)
	}
	if text.Len() == 0 {
		t.Errorf("%s: no licence file in %s", path, dir)
	}
	return text.String()
}
