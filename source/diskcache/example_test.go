package diskcache_test

import (
	"context"
	"fmt"
	"os"

	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/source/diskcache"
)

// versioned is an object with a version, as remote ones have.
type versioned struct{ source.Object }

func (versioned) Version() string { return `"5d41402a"` }

func Example() {
	dir, err := os.MkdirTemp("", "cache")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	cache, err := diskcache.Open(dir, 64<<20)
	if err != nil {
		fmt.Println(err)
		return
	}
	const url = "https://example.com/words"
	words := versioned{source.Memory(url, []byte("peg, cask, tap"))}

	var meter source.Meter
	ctx := context.Background()
	obj := cache.Object(url, meter.Object(words), &meter)
	word := make([]byte, 4)
	for _, off := range []int64{5, 0} {
		if err := obj.ReadAt(ctx, word, off); err != nil {
			fmt.Println(err)
			return
		}
	}
	r := meter.Receipt()
	fmt.Println(r.Requests, "request,", r.CacheHits, "hit")

	known, ok := cache.Known(url)
	fmt.Println(known.Size, known.Version, ok)
	again, err := cache.Offline(url, url, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(again.ReadAt(ctx, word, 5), string(word))

	// That there is no index beside it is known as well, until one is made.
	cache.SetMissing(url+".index", words.Version())
	fmt.Println(cache.Missing(url+".index", words.Version()))
	cache.Made(url + ".index")
	fmt.Println(cache.Missing(url+".index", words.Version()))
	// Output:
	// 1 request, 1 hit
	// 14 "5d41402a" true
	// <nil> cask
	// true
	// false
}
