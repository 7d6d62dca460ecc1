package lifecycletest

import (
	"context"
	"errors"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/podkey"
	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// Lists describes the behaviour of [Runtime.Running]. With the zero value it lists the running containers
// immediately.
type Lists struct {
	// Poll is the interval of a runtime that polls: a list waits for the next poll, counted from
	// [Runtime.SetLists], and returns the state at that time. 0 or less: no polling.
	Poll time.Duration
	// Takes is the time from reading the running containers to returning them, or Err. 0 or less: none.
	Takes time.Duration
	// Err is the error of each list, or nil.
	Err error
	// Hang makes a list hang until its context ends, or until [Runtime.Release].
	Hang bool
	// Lacks has the IDs of running containers that are not listed.
	Lacks []string
	// HasEnded also lists exited containers, until they are removed.
	HasEnded bool
}

// SetLists changes the behaviour of later calls of [Runtime.Running].
func (r *Runtime) SetLists(l Lists) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lists, r.listsSetAt = l, time.Now()
}

// Running implements [lifecycle.Runtime]. It lists the running containers of a pod in the order of their
// starts, subject to [Lists].
func (r *Runtime) Running(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	ctx, cancel, isAway := r.endWhenAway(ctx)
	defer cancel()
	r.mu.Lock()
	l, setAt := r.lists, r.listsSetAt
	r.mu.Unlock()
	switch {
	case pod == nil:
		return nil, errors.New("the pod is nil")
	case isAway:
		return nil, ErrAway
	case l.Hang:
		select {
		case <-r.released:
			return nil, ErrScripted
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if l.Poll > 0 {
		untilNextPoll := l.Poll - time.Since(setAt)%l.Poll
		if err := times.Sleep(ctx, untilNextPoll); err != nil {
			return nil, err
		}
	}
	running := r.listed(pod, l)
	if err := times.Sleep(ctx, l.Takes); err != nil {
		return nil, err
	}
	if l.Err != nil {
		return nil, l.Err
	}
	return running, nil
}

// listed returns the containers that a list of a pod has now: the running ones, and those that have ended if l.HasEnded is
// set, but none of l.Lacks.
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
