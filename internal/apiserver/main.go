package main

import (
	"context"
	"flag"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"google.golang.org/grpc/grpclog"
)

// main runs the API server until a signal, or, if a flag says so, until the end of its standard input.
func main() {
	var o options
	flag.StringVar(&o.data, "data", "", "the folder that etcd stores in; a temporary one if empty")
	flag.StringVar(&o.listen, "listen", "127.0.0.1:0", "the address of the API; port 0 is one of the kernel's choice")
	untilEOF := flag.Bool("exit-on-stdin-eof", false, "end when the standard input ends, as it does when the parent dies")
	flag.Parse()
	// Without this etcd's client logs a warning for each connection that its balancer drops.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, os.Stderr))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *untilEOF {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // an error ends the program as the end of the input does
			stop()
		}()
	}
	if err := run(ctx, o, os.Stdout); err != nil {
		log.Fatal(err) //nolint:gocritic // the deferred stop is not needed any more
	}
}
