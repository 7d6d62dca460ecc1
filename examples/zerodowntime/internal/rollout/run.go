package rollout

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/process"
	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/proxy"
	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/traffic"
	"github.com/kubegrace/kubegrace/lifecycle"
)

const (
	// quiet is how long the service is used before the rolling update begins and after it.
	quiet = time.Second
	// short is how long a short request takes.
	short = 20 * time.Millisecond
	// messages is the time between two messages of a websocket.
	messages = 250 * time.Millisecond
)

// Progress is told of what happens to the pods of a scenario: who, what, and when since
// the rolling update began.
type Progress func(scenario, pod, what string, at time.Duration)

// cluster is the service of one scenario.
type cluster struct {
	settings   Settings
	scenario   Scenario
	progress   Progress
	runtime    *process.Runtime
	terminator *lifecycle.Terminator
	table      *proxy.Table
	began      time.Time // of the rolling update; set before the first pod is deleted

	mu   sync.Mutex
	pods []*pod // all that were ready
}

// Run runs one scenario: it starts the service, uses it, replaces all its pods, and says
// what its users noticed. It leaves nothing running.
func Run(ctx context.Context, s Settings, scenario Scenario, progress Progress) (result Result, err error) {
	c := &cluster{settings: s, scenario: scenario, progress: progress, table: proxy.NewTable(s.Delay)}
	c.runtime = process.New(c.signal)
	c.terminator, err = lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: c.runtime, Exits: c.runtime})
	if err != nil {
		return Result{}, err
	}
	defer func() {
		err = errors.Join(err, c.runtime.Close(), c.terminator.Close(context.WithoutCancel(ctx)))
	}()
	old := make([]*pod, s.Replicas)
	var starting errgroup.Group
	for i := range old {
		old[i] = newPod("old-"+strconv.Itoa(i+1), s, scenario)
		starting.Go(func() error { return c.start(ctx, old[i]) })
	}
	if err := starting.Wait(); err != nil {
		return Result{}, err
	}
	if err := wait(ctx, s.Delay); err != nil { // until the proxy knows them
		return Result{}, err
	}
	return c.use(ctx, old)
}

// use sends traffic to the service while its pods are replaced.
func (c *cluster) use(ctx context.Context, old []*pod) (Result, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return Result{}, fmt.Errorf("failed to start the proxy: %w", err)
	}
	handler := proxy.New(c.table)
	defer handler.Close()
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	var recorder traffic.Recorder
	using, stop := context.WithCancel(ctx)
	defer stop()
	until, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		c.send(using, until, listener.Addr().String(), &recorder)
	}()
	err = c.update(ctx, old)
	if err != nil {
		stop() // there is nothing to be measured any more
	}
	close(until)
	<-done
	err = errors.Join(err, server.Close())
	if failure := <-served; !errors.Is(failure, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("the proxy failed: %w", failure))
	}
	if err != nil {
		return Result{}, err
	}
	return c.result(old, recorder.Events()), context.Cause(ctx)
}

// send is the traffic of a scenario.
func (c *cluster) send(ctx context.Context, until <-chan struct{}, address string, to *traffic.Recorder) {
	takes := func(d time.Duration) string { return "http://" + address + "/?takes=" + d.String() }
	switch c.scenario.Load {
	case Tasks:
		traffic.Requests(ctx, until, takes(c.settings.Task), max(c.settings.Rate/10, 1), to)
	case Websockets:
		traffic.Websockets(ctx, until, "ws://"+address+"/ws", c.settings.Websockets, messages, to)
	case Web:
		traffic.Requests(ctx, until, takes(short), c.settings.Rate, to)
	}
}

// update replaces the pods as a Deployment does with maxSurge 1 and maxUnavailable 0: a
// new pod, and when it has been ready for a while, the delete of an old one, whose end
// is not waited for before the next.
func (c *cluster) update(ctx context.Context, old []*pod) error {
	lead := quiet
	if c.scenario.Load == Tasks {
		lead += c.settings.Task // so that answers come as often as requests go
	}
	if err := wait(ctx, lead); err != nil {
		return err
	}
	c.began = time.Now()
	var ending errgroup.Group
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	for i, p := range old {
		if err := c.replace(ctx, p, newPod("new-"+strconv.Itoa(i+1), c.settings, c.scenario)); err != nil {
			stop()
			_ = ending.Wait() // what came first is the reason
			return err
		}
		ending.Go(func() error { return c.await(waiting, p) })
	}
	if err := ending.Wait(); err != nil {
		return err
	}
	return wait(ctx, c.settings.Delay+quiet)
}

// replace deletes an old pod when a new one has been ready for a while.
func (c *cluster) replace(ctx context.Context, old, by *pod) error {
	if err := c.start(ctx, by); err != nil {
		return err
	}
	if err := wait(ctx, c.settings.MinReady); err != nil {
		return err
	}
	return c.remove(ctx, old)
}

// result is what was measured, when all has ended.
func (c *cluster) result(old []*pod, events []traffic.Event) Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := Result{
		Scenario: c.scenario.Name, Title: c.scenario.Title, Load: c.scenario.Load,
		PreStopSleepSeconds: c.scenario.SleepSeconds, TerminationGracePeriodSeconds: c.settings.GraceSeconds,
		DeleteGracePeriodSeconds: c.scenario.DeleteGraceSeconds,
	}
	signalled := map[string]time.Time{}
	for _, p := range old {
		ended := p.termination.Result().Containers[0]
		row := Pod{
			Name: p.name, DeletedSeconds: seconds(p.deleted.Sub(c.began)), ExitedSeconds: seconds(p.exited.Sub(c.began)),
			Outcome: string(ended.Outcome), PreStop: string(ended.Hook.Outcome), Exit: c.runtime.State(p.name), Killed: p.killed,
			TookSeconds: seconds(p.exited.Sub(p.deleted)),
		}
		if !p.signalled.IsZero() {
			signalled[p.name] = p.signalled
			row.SignalSeconds = seconds(p.signalled.Sub(c.began))
		}
		r.Pods = append(r.Pods, row)
	}
	r.measure(events, c.began, signalled)
	return r
}

// publishLocked publishes the endpoints of all pods. The caller holds the mutex.
func (c *cluster) publishLocked() {
	endpoints := make([]proxy.Endpoint, 0, len(c.pods))
	for _, p := range c.pods {
		endpoints = append(endpoints, p.endpoint())
	}
	c.table.Publish(endpoints)
}

// findLocked finds a pod. The caller holds the mutex.
func (c *cluster) findLocked(name string) *pod {
	for _, p := range c.pods {
		if p.name == name {
			return p
		}
	}
	return nil
}

func (c *cluster) say(p *pod, what string) {
	if c.progress != nil {
		c.progress(c.scenario.Name, p.name, what, time.Since(c.began))
	}
}

// wait waits for a time, and gives the cause of ctx if that ends first.
func wait(ctx context.Context, span time.Duration) error {
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
