package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// waitReady waits until the server and the watch caches of all resources are ready, so that no test sees an empty cache. Only
// the watch cache answers a list with resourceVersion 0, and the list fails until the cache is ready.
func waitReady(ctx context.Context, url string) error {
	all := resources()
	paths := make([]string, 0, len(all)+1)
	paths = append(paths, "/readyz")
	for _, r := range all {
		paths = append(paths, r.path()+"?resourceVersion=0")
	}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	const immediately = true // the first attempt is made at once
	for _, path := range paths {
		var lastErr error
		err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, readyTimeout, immediately, func(ctx context.Context) (bool, error) {
			lastErr = get(ctx, client, url+path)
			return lastErr == nil, nil
		})
		if err != nil {
			return fmt.Errorf("%s is not ready: %w", path, errors.Join(err, lastErr))
		}
	}
	return nil
}

// get returns an error unless the server answers a GET with 200.
func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return errors.Join(err, response.Body.Close())
}
