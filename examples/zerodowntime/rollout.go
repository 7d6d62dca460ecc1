package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
)

const (
	// replicas is the number of pods of the service.
	replicas = 3
	// minReady is how long a new pod is ready before an old one is deleted, like a Deployment's
	// minReadySeconds.
	minReady = time.Second
	// margin is how long clients send requests before the rolling update, and again after it.
	margin = time.Second
)

// result is what was measured in one rolling update.
type result struct {
	scenario    scenario
	sent, lost  int           // how many requests were sent, and how many of them failed
	longestStop time.Duration // the longest time from the delete of a pod to its end
}

// rollout is a service in which a rolling update takes place.
type rollout struct {
	scenario   scenario
	node       *node
	balancer   *balancer
	transport  *http.Transport
	terminator *lifecycle.Terminator
}

// measure starts a service and replaces all its pods while clients send requests. delay is how late the load balancer
// learns of changes. When measure returns, all containers have ended.
func measure(ctx context.Context, network network, delay time.Duration, s scenario) (measured result, err error) {
	r := &rollout{
		scenario: s, node: newNode(network), balancer: &balancer{delay: delay},
		transport: &http.Transport{DialContext: network.dial, MaxIdleConnsPerHost: rate},
	}
	r.terminator, err = lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: r.node})
	if err != nil {
		return result{}, err
	}
	defer func() {
		err = errors.Join(err, r.terminator.Close(context.WithoutCancel(ctx)), r.node.close())
		r.transport.CloseIdleConnections()
	}()
	address, err := r.node.start(ctx, "balancer", forward(r.transport, r.balancer.pick))
	if err != nil {
		return result{}, err
	}
	old := make([]pod, replicas)
	for i := range old {
		if old[i], err = r.startPod(ctx, fmt.Sprintf("old-%d", i+1)); err != nil {
			return result{}, err
		}
	}
	if err := wait(ctx, delay); err != nil { // until the load balancer knows the pods
		return result{}, err
	}
	measured.scenario = s
	updated := make(chan struct{})
	var clients sync.WaitGroup
	clients.Go(func() {
		measured.sent, measured.lost = sendRequests(ctx, &http.Client{Transport: r.transport}, "http://"+address, updated)
	})
	measured.longestStop, err = r.update(ctx, old)
	close(updated)
	clients.Wait()
	return measured, err
}

// update replaces the old pods as a Deployment with maxSurge 1 and maxUnavailable 0 does. For each old pod it
// starts a new one, waits until that has been ready for minReady, and deletes the old one. It does not wait
// for the end of the old pod before it replaces the next one. It returns the longest time from a delete to the end of the
// pod.
func (r *rollout) update(ctx context.Context, old []pod) (longestStop time.Duration, err error) {
	if err := wait(ctx, margin); err != nil {
		return 0, err
	}
	stopTimes := make([]time.Duration, len(old)) // how long each old pod took to end
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		for i, p := range old {
			if _, err := r.startPod(groupCtx, fmt.Sprintf("new-%d", i+1)); err != nil {
				return err
			}
			if err := wait(groupCtx, minReady); err != nil {
				return err
			}
			group.Go(func() (err error) {
				stopTimes[i], err = r.deletePod(groupCtx, p)
				return err
			})
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return 0, err
	}
	return slices.Max(stopTimes), wait(ctx, r.balancer.delay+margin) // until the load balancer knows the last change
}

// pod is a running pod.
type pod struct {
	object  *v1.Pod
	address string // to which the load balancer sends its requests
}

// startPod starts the containers of a pod and adds the pod to the load balancer. The pod is ready at once.
func (r *rollout) startPod(ctx context.Context, name string) (pod, error) {
	object := r.scenario.pod(name)
	address, err := r.node.start(ctx, containerID(name, webContainer), http.HandlerFunc(answer))
	if err != nil {
		return pod{}, err
	}
	if r.scenario.proxy != noProxy {
		web := address
		address, err = r.node.start(ctx, containerID(name, proxyContainer), forward(r.transport, func() string { return web }))
		if err != nil {
			return pod{}, err
		}
	}
	r.balancer.add(address)
	return pod{object: object, address: address}, nil
}

// deletePod deletes a pod and returns how long the pod took to end. It does what the API server does, which
// sets the grace period of the delete, and then what the node does, which stops the containers.
func (r *rollout) deletePod(ctx context.Context, p pod) (time.Duration, error) {
	var options metav1.DeleteOptions
	if r.scenario.grace > 0 {
		options.GracePeriodSeconds = &r.scenario.grace
	}
	start := time.Now()
	if _, _, err := graceperiod.BeforeDelete(p.object, &options, start); err != nil {
		return 0, fmt.Errorf("failed to delete %s: %w", p.object.Name, err)
	}
	r.balancer.remove(p.address)
	if _, err := r.terminator.KillPod(ctx, p.object, lifecycle.Request{}); err != nil {
		return 0, fmt.Errorf("failed to stop %s: %w", p.object.Name, err)
	}
	return time.Since(start), nil
}

// wait waits for a time. If ctx ends first, it returns the cause.
func wait(ctx context.Context, span time.Duration) error {
	select {
	case <-time.After(span):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
