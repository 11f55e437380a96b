package main

import (
	"context"
	"os"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// progressAfter is how long work lasts before it is worth a bar.
const progressAfter = time.Second

// progress shows how much of the input was read, on a terminal, once the work has lasted a second. The function it
// returns takes the bar away.
func (e *env) progress(ctx context.Context, verb string) func() {
	f, ok := e.stderr.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return func() {}
	}
	end := make(chan struct{})
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case <-time.After(progressAfter):
			e.showBar(ctx, f, verb, end)
		case <-end:
		case <-ctx.Done():
		}
	}()
	return func() {
		close(end)
		<-gone
	}
}

// showBar follows the meter, which knows better than any verb how far the reading is.
func (e *env) showBar(ctx context.Context, f *os.File, verb string, end <-chan struct{}) {
	bars := mpb.New(mpb.WithOutput(f), mpb.WithAutoRefresh())
	bar := bars.AddBar(0,
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(verb+" "), decor.NewPercentage("%d")),
		mpb.AppendDecorators(decor.AverageSpeed(decor.SizeB1024(0), "% .1f")))
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		r := e.shared.meter.Receipt()
		all := r.Size * max(1, e.passes.Load())
		bar.SetTotal(all+1, false) // a full bar would be taken away before the work ends
		bar.SetCurrent(min(r.Bytes, all))
		select {
		case <-tick.C:
			continue
		case <-end:
		case <-ctx.Done():
		}
		bar.Abort(true)
		bars.Wait()
		return
	}
}
