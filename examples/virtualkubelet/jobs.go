//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// jobs runs each pod as a job of an HTTP service with these requests:
//
//	PUT    /jobs/UID                     create the job for the pod in the body, unless it exists
//	POST   /jobs/UID/stop?grace=SECONDS  stop it; kill it after the grace period
//	GET    /jobs                         list the jobs of this node, as pods with statuses
//	DELETE /jobs/UID                     delete it
//
// The status 404 means that there is no such job, and 422 that the pod can never run.
type jobs struct {
	url    string
	client http.Client
}

// Create creates the job of a pod.
func (j *jobs) Create(ctx context.Context, pod *v1.Pod) error {
	return j.request(ctx, http.MethodPut, "/jobs/"+string(pod.UID), pod, nil)
}

// Stop requests the stop of a job, and does not wait for its end.
func (j *jobs) Stop(ctx context.Context, pod *v1.Pod, graceSeconds int64) error {
	return j.request(ctx, http.MethodPost, fmt.Sprintf("/jobs/%s/stop?grace=%d", pod.UID, graceSeconds), nil, nil)
}

// Statuses returns the pods of all jobs of this node, with their statuses.
func (j *jobs) Statuses(ctx context.Context) (pods []*v1.Pod, err error) {
	err = j.request(ctx, http.MethodGet, "/jobs", nil, &pods)
	return pods, err
}

// Delete deletes the job of a pod.
func (j *jobs) Delete(ctx context.Context, pod *v1.Pod) error {
	return j.request(ctx, http.MethodDelete, "/jobs/"+string(pod.UID), nil, nil)
}

// request sends one request, with pod as its body, and decodes the response into answer. Both may be nil. A status of
// 300 or more is an error: 404 means that there is no such job, and 422 that the service will never accept the pod.
func (j *jobs) request(ctx context.Context, method, path string, pod *v1.Pod, answer any) error {
	var body io.Reader
	if pod != nil {
		encoded, err := json.Marshal(pod)
		if err != nil {
			return err
		}
		body = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, j.url+path, body)
	if err != nil {
		return err
	}
	response, err := j.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	switch {
	case response.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s %s: %w", method, path, lifecycle.ErrContainerNotFound)
	case response.StatusCode == http.StatusUnprocessableEntity:
		return errdefs.InvalidInputf("%s %s: %s", method, path, response.Status)
	case response.StatusCode >= http.StatusMultipleChoices:
		return fmt.Errorf("%s %s: %s", method, path, response.Status)
	case answer == nil:
		return nil
	}
	return json.NewDecoder(response.Body).Decode(answer)
}
