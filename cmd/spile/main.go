// Spile reads one value out of a huge document, writes such documents, and shows where their bytes are.
//
// Each verb has a file of its own. What they share: root.go has the streams and flags of a run, format.go finds the
// format of a file from its content, open.go opens what an argument names, output.go writes results, receipt.go counts
// what was read, and exit.go turns an error into a message and a status.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signal.Ignore(syscall.SIGPIPE) // a reader of standard output that leaves is an error of the write, see exit.go
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
