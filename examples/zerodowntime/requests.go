package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// rate is the number of requests a second.
	rate = 50
	// requestTime is how long a web server takes to answer.
	requestTime = 50 * time.Millisecond
)

// answer is the handler of a web server.
func answer(w http.ResponseWriter, r *http.Request) {
	select {
	case <-time.After(requestTime):
		fmt.Fprintln(w, "done")
	case <-r.Context().Done(): // the client has gone
	}
}

// sendRequests sends requests at a steady rate, whether or not the earlier ones are answered, until stop is closed.
// It returns when all have ended, with their number and the number of those that got no answer. An overloaded
// machine sends fewer: requests that had to be sent in a burst later would exhaust it, and be lost for that reason.
func sendRequests(ctx context.Context, client *http.Client, url string, stop <-chan struct{}) (sent, lost int) {
	ticker := time.NewTicker(time.Second / rate) // a ticker whose receiver is late drops ticks
	defer ticker.Stop()
	var inFlight sync.WaitGroup
	var failed atomic.Int64
	for {
		select {
		case <-ticker.C:
			sent++
			inFlight.Go(func() {
				if err := post(ctx, client, url); err != nil {
					failed.Add(1)
				}
			})
		case <-stop:
			inFlight.Wait()
			return sent, int(failed.Load())
		}
	}
}

// post sends one request and reads its answer. It is a POST, which HTTP clients and proxies do not repeat by
// themselves, so that no failure is hidden.
func post(ctx context.Context, client *http.Client, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if response.StatusCode != http.StatusOK {
		err = errors.Join(err, fmt.Errorf("the answer is %s", response.Status))
	}
	return errors.Join(err, response.Body.Close())
}
