package lifecycletest

import (
	"context"
	"errors"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/podkey"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// Lists says how [Runtime.Running] answers. With the zero value it lists at once what runs.
type Lists struct {
	// Poll is the interval of a runtime that polls: a list waits for the next poll, counted from
	// [Runtime.SetLists], and has what runs then. 0 or less: it has what runs now.
	Poll time.Duration
	// Takes is how long after that a list returns; 0 or less: at once.
	Takes time.Duration
	// Err is the error of each list; nil: lists succeed.
	Err error
	// Hang makes a list hang until its context ends, and HangIgnoresContext until [Runtime.Release].
	Hang, HangIgnoresContext bool
	// Lacks are the IDs of containers that run and are not listed.
	Lacks []string
	// HasEnded lists containers that have exited too, until they are removed.
	HasEnded bool
}

// SetLists makes the runtime list in another way from now on. A list that is under way goes on.
func (r *Runtime) SetLists(l Lists) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lists, r.listsSince = l, time.Now()
}

// Running lists the containers of a pod that run, in the order of their starts, unless [Lists] says
// otherwise. While the runtime is [Runtime.Away] it returns [ErrAway].
func (r *Runtime) Running(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	ctx, cancel, isAway := r.limit(ctx)
	defer cancel()
	r.mu.Lock()
	l, since := r.lists, r.listsSince
	r.mu.Unlock()
	switch {
	case pod == nil:
		return nil, errors.New("the pod is nil")
	case isAway:
		return nil, ErrAway
	case l.HangIgnoresContext:
		<-r.released
		return nil, ErrScripted
	case l.Hang:
		select {
		case <-r.released:
			return nil, ErrScripted
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if l.Poll > 0 {
		if err := wait(ctx, l.Poll-time.Since(since)%l.Poll); err != nil {
			return nil, err
		}
	}
	running := r.listed(pod, l)
	if err := wait(ctx, l.Takes); err != nil {
		return nil, err
	}
	if l.Err != nil {
		return nil, l.Err
	}
	return running, nil
}

// listed returns the containers of a pod that are listed now.
func (r *Runtime) listed(pod *v1.Pod, l Lists) []lifecycle.Container {
	r.mu.Lock()
	defer r.mu.Unlock()
	var running []lifecycle.Container
	for _, c := range r.pods[podkey.Of(pod)] {
		_, exited := c.exitCode()
		if (!exited || l.HasEnded) && !slices.Contains(l.Lacks, c.listed.ID) {
			running = append(running, c.listed)
		}
	}
	return running
}

// wait waits for a while. The error is the cause of the end of ctx.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
