package apiserverproxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
)

// Transport is an [http.RoundTripper] that causes faults. All methods may be called
// concurrently.
type Transport struct {
	base    http.RoundTripper
	journal journal

	mu     sync.Mutex // guards the field below
	script Script
}

// NewTransport returns a Transport that forwards requests to base. It causes no faults until
// [Transport.Script] is called.
func NewTransport(base http.RoundTripper) *Transport { return &Transport{base: base} }

// Script sets the script for all later requests. Nil, the initial script, causes no faults.
func (t *Transport) Script(script Script) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.script = script
}

// Requests returns the received requests in order. A request has its Status and Answered before the client receives
// the response.
func (t *Transport) Requests() []Request { return t.journal.all() }

// RoundTrip records a request and forwards it with the fault of the script. It also records the status of the
// response; a request without a response keeps the status 0.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := readAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("failed to read the body: %w", err)
	}
	recorded := describe(r, body)
	index := t.journal.arrived(recorded)
	response, err := t.applyFault(r, recorded, t.fault(recorded))
	if err != nil {
		return nil, err
	}
	t.journal.answered(index, response.StatusCode)
	return response, nil
}

// fault returns the fault that the script chooses for a request; without a script there is none. It does not hold
// the mutex while it calls the script, which may block.
func (t *Transport) fault(r Request) Fault {
	t.mu.Lock()
	script := t.script
	t.mu.Unlock()
	if script == nil {
		return Fault{}
	}
	return script(r)
}

// applyFault first waits for the Delay of a fault. Then it does what the first field says that is set: it drops the
// request, forwards it and loses the response, hangs, or rejects it. Without a fault it forwards the request.
func (t *Transport) applyFault(r *http.Request, recorded Request, fault Fault) (*http.Response, error) {
	ctx := r.Context()
	if err := fault.wait(ctx); err != nil {
		return nil, err
	}
	switch {
	case fault.Drop:
		return nil, errDropped
	case fault.Lost:
		return nil, t.loseResponse(r, recorded, fault)
	case fault.Hang:
		return nil, hang(ctx)
	case fault.Status != 0:
		return reject(r, fault)
	default:
		return t.forward(r, recorded)
	}
}

// loseResponse forwards a request, so that the server carries it out, and withholds the response. With Hang it
// returns only when the client gives up.
func (t *Transport) loseResponse(r *http.Request, recorded Request, fault Fault) error {
	response, err := t.forward(r, recorded)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if fault.Hang {
		return hang(r.Context())
	}
	return errLost
}

// forward sends a copy of r to the server. It uses the recorded body, because RoundTrip has already read r's.
func (t *Transport) forward(r *http.Request, recorded Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = http.NoBody, 0
	if len(recorded.Body) > 0 {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(recorded.Body)), int64(len(recorded.Body))
	}
	return t.base.RoundTrip(r)
}

// hang waits until ctx ends.
func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// reject returns the response of an API server that rejects the request.
func reject(r *http.Request, fault Fault) (*http.Response, error) {
	seconds := max(0, int(math.Ceil(fault.RetryAfter.Seconds())))
	const isUnexpected = false
	status := apierrors.NewGenericServerResponse(fault.Status, r.Method, schema.GroupResource{}, "", "rejected by the script", seconds, isUnexpected).Status()
	status.APIVersion, status.Kind = "v1", "Status"
	body, err := json.Marshal(&status)
	if err != nil {
		return nil, err
	}
	header := http.Header{"Content-Type": {runtime.ContentTypeJSON}}
	if seconds > 0 {
		header.Set("Retry-After", strconv.Itoa(seconds))
	}
	return &http.Response{
		Status: strconv.Itoa(fault.Status) + " " + http.StatusText(fault.Status), StatusCode: fault.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// readAll reads and closes a body. A nil body is empty.
func readAll(body io.ReadCloser) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	all, err := io.ReadAll(body)
	return all, errors.Join(err, body.Close())
}
