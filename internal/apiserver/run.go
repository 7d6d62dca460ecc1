package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// options are the flags of the program.
type options struct {
	data   string // the folder of etcd; "": a temporary folder
	listen string // host and port
}

// run serves until ctx ends. It writes the URL to out when the server is ready.
func run(ctx context.Context, o options, out io.Writer) (err error) {
	if o.data == "" {
		if o.data, err = os.MkdirTemp("", "apiserver-"); err != nil {
			return fmt.Errorf("failed to make a folder for etcd: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.data)) }()
	}
	etcd, err := startEtcd(ctx, o.data)
	if err != nil {
		return err
	}
	defer etcd.Close()
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("failed to listen: %w", err)
	}
	url := "http://" + listener.Addr().String()
	api, err := newAPI(url, listener.Addr().String(), "http://"+etcd.Clients[0].Addr().String())
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer api.Destroy()
	hooksCtx, endHooks := context.WithCancel(context.WithoutCancel(ctx)) // the server's hooks run until run returns
	defer endHooks()
	const shutdownTimeout = 0 // is not used without TLS
	// RunWithContext cannot be used: without TLS it waits for nil channels and never returns.
	if _, _, err := api.PrepareRun().NonBlockingRunWithContext(hooksCtx, shutdownTimeout); err != nil {
		return errors.Join(fmt.Errorf("failed to start the API server: %w", err), listener.Close())
	}
	return serve(ctx, &http.Server{Handler: api.Handler, ReadHeaderTimeout: time.Minute}, listener, func() error {
		if err := waitReady(ctx, url); err != nil {
			return err
		}
		_, err := fmt.Fprintln(out, url)
		return err
	})
}

// serve serves on a listener until ctx ends or onServing fails. It calls onServing as soon as clients can connect, so
// that onServing may make requests itself. At the end all connections are closed, even those of watches.
func serve(ctx context.Context, server *http.Server, listener net.Listener, onServing func() error) error {
	serveErrs := make(chan error, 1)
	go func() { serveErrs <- server.Serve(listener) }()
	err := onServing()
	if err == nil {
		select {
		case <-ctx.Done():
		case serveErr := <-serveErrs:
			return fmt.Errorf("failed to serve: %w", serveErr)
		}
	}
	err = errors.Join(err, server.Close())
	if serveErr := <-serveErrs; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("failed to serve: %w", serveErr))
	}
	return err
}
