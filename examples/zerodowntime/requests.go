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
	// rate is the number of requests that all clients together send in a second.
	rate = 50
	// requestTime is how long a web server takes to answer.
	requestTime = 50 * time.Millisecond
)

// answer is the handler of a pod's web server. It answers after requestTime.
func answer(w http.ResponseWriter, r *http.Request) {
	select {
	case <-time.After(requestTime):
		fmt.Fprintln(w, "done")
	case <-r.Context().Done(): // the client has gone
	}
}

// sendRequests sends requests at a steady rate until stop is closed. It does not wait for the answer to one
// request before it sends the next. When all requests have ended, it returns how many were sent and how many
// of them failed. An overloaded machine sends fewer requests. It does not send the omitted ones later: many at once
// might fail because of the load.
func sendRequests(ctx context.Context, client *http.Client, url string, stop <-chan struct{}) (sent, lost int) {
	ticker := time.NewTicker(time.Second / rate) // it drops ticks if they are received late
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

// post sends one request and reads its answer. Any other status than 200 is an error. The request is a POST,
// because HTTP clients and proxies may repeat a failed GET by themselves, which would hide the failure.
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
