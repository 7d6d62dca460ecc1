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
	// margin is how long traffic is sent before the rolling update and after it.
	margin = time.Second
	// shortRequest is how long a short request takes.
	shortRequest = 20 * time.Millisecond
	// messageInterval is the time between two messages of a websocket.
	messageInterval = 250 * time.Millisecond
)

// Progress is called for each event of a pod of a scenario. at is the time since the start of
// the rolling update.
type Progress func(scenario, pod, event string, at time.Duration)

// service is the service of one scenario: its pods and the proxy in front of them.
type service struct {
	settings   Settings
	scenario   Scenario
	progress   Progress
	runtime    *process.Runtime
	terminator *lifecycle.Terminator
	table      *proxy.Table
	start      time.Time // when the rolling update started; set before the first delete

	mu   sync.Mutex
	pods []*pod // all pods that have become ready, including those that have ended
}

// Run runs one scenario: it starts the service, sends traffic to it, replaces all its pods,
// and returns what was measured. All processes have ended when it returns. progress may be
// nil.
func Run(ctx context.Context, s Settings, scenario Scenario, progress Progress) (result Result, err error) {
	svc := &service{settings: s, scenario: scenario, progress: progress, table: proxy.NewTable(s.Delay)}
	svc.runtime = process.New(svc.onSignal)
	svc.terminator, err = lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: svc.runtime, Exits: svc.runtime})
	if err != nil {
		return Result{}, err
	}
	defer func() {
		err = errors.Join(err, svc.runtime.Close(), svc.terminator.Close(context.WithoutCancel(ctx)))
	}()
	old := make([]*pod, s.Replicas)
	var starts errgroup.Group
	for i := range old {
		old[i] = newPod("old-"+strconv.Itoa(i+1), s, scenario)
		starts.Go(func() error { return svc.startPod(ctx, old[i]) })
	}
	if err := starts.Wait(); err != nil {
		return Result{}, err
	}
	if err := wait(ctx, s.Delay); err != nil { // until the proxy knows the pods
		return Result{}, err
	}
	return svc.measureUpdate(ctx, old)
}

// measureUpdate sends traffic to the service while its pods are replaced.
func (svc *service) measureUpdate(ctx context.Context, old []*pod) (Result, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return Result{}, fmt.Errorf("failed to start the proxy: %w", err)
	}
	handler := proxy.New(svc.table)
	defer handler.Close()
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	var recorder traffic.Recorder
	trafficCtx, stop := context.WithCancel(ctx)
	defer stop()
	until, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		svc.sendTraffic(trafficCtx, until, listener.Addr().String(), &recorder)
	}()
	err = svc.update(ctx, old)
	if err != nil {
		stop() // the result is not needed any more
	}
	close(until)
	<-done
	err = errors.Join(err, server.Close())
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("the proxy failed: %w", serveErr))
	}
	if err != nil {
		return Result{}, err
	}
	return svc.result(old, recorder.Events()), context.Cause(ctx)
}

// sendTraffic sends the traffic of the scenario until the channel until is closed.
func (svc *service) sendTraffic(ctx context.Context, until <-chan struct{}, address string, to *traffic.Recorder) {
	url := func(takes time.Duration) string { return "http://" + address + "/?takes=" + takes.String() }
	switch svc.scenario.Load {
	case Tasks:
		traffic.Requests(ctx, until, url(svc.settings.Task), max(svc.settings.Rate/10, 1), to)
	case Websockets:
		traffic.Websockets(ctx, until, "ws://"+address+"/ws", svc.settings.Websockets, messageInterval, to)
	case Web:
		traffic.Requests(ctx, until, url(shortRequest), svc.settings.Rate, to)
	}
}

// update replaces the pods as a Deployment does with maxSurge 1 and maxUnavailable 0. It
// starts a new pod, waits until that has been ready for MinReady, deletes an old pod, and goes
// on with the next without waiting for the end of the old one.
func (svc *service) update(ctx context.Context, old []*pod) error {
	lead := margin
	if svc.scenario.Load == Tasks {
		lead += svc.settings.Task // from then on answers come at the rate of the requests
	}
	if err := wait(ctx, lead); err != nil {
		return err
	}
	svc.start = time.Now()
	var ends errgroup.Group
	endsCtx, stop := context.WithCancel(ctx)
	defer stop()
	for i, p := range old {
		if err := svc.replace(ctx, p, newPod("new-"+strconv.Itoa(i+1), svc.settings, svc.scenario)); err != nil {
			stop()
			_ = ends.Wait() // the error of replace is the cause of all others
			return err
		}
		ends.Go(func() error { return svc.waitForEnd(endsCtx, p) })
	}
	if err := ends.Wait(); err != nil {
		return err
	}
	return wait(ctx, svc.settings.Delay+margin)
}

// replace starts a new pod, and deletes an old one when the new one has been ready for
// MinReady.
func (svc *service) replace(ctx context.Context, old, replacement *pod) error {
	if err := svc.startPod(ctx, replacement); err != nil {
		return err
	}
	if err := wait(ctx, svc.settings.MinReady); err != nil {
		return err
	}
	return svc.deletePod(ctx, old)
}

// result returns what was measured. All pods have ended.
func (svc *service) result(old []*pod, events []traffic.Event) Result {
	svc.mu.Lock()
	defer svc.mu.Unlock()
	r := Result{
		Scenario: svc.scenario.Name, Title: svc.scenario.Title, Load: svc.scenario.Load,
		PreStopSleepSeconds: svc.scenario.SleepSeconds, TerminationGracePeriodSeconds: svc.settings.GraceSeconds,
		DeleteGracePeriodSeconds: svc.scenario.DeleteGraceSeconds,
	}
	signalled := map[string]time.Time{}
	for _, p := range old {
		container := p.termination.Result().Containers[0]
		row := Pod{
			Name: p.name, DeletedSeconds: seconds(p.deleted.Sub(svc.start)), ExitedSeconds: seconds(p.exited.Sub(svc.start)),
			Outcome: string(container.Outcome), PreStop: string(container.Hook.Outcome), Exit: svc.runtime.State(p.name), Killed: p.killed,
			TookSeconds: seconds(p.exited.Sub(p.deleted)),
		}
		if !p.signalled.IsZero() {
			signalled[p.name] = p.signalled
			row.SignalSeconds = seconds(p.signalled.Sub(svc.start))
		}
		r.Pods = append(r.Pods, row)
	}
	r.measure(events, svc.start, signalled)
	return r
}

// publishLocked publishes the endpoints of all pods.
func (svc *service) publishLocked() {
	endpoints := make([]proxy.Endpoint, 0, len(svc.pods))
	for _, p := range svc.pods {
		endpoints = append(endpoints, p.endpoint())
	}
	svc.table.Publish(endpoints)
}

// findLocked returns the pod with a name; nil if there is none.
func (svc *service) findLocked(name string) *pod {
	for _, p := range svc.pods {
		if p.name == name {
			return p
		}
	}
	return nil
}

// report passes an event of a pod to the Progress function.
func (svc *service) report(p *pod, event string) {
	if svc.progress != nil {
		svc.progress(svc.scenario.Name, p.name, event, time.Since(svc.start))
	}
}

// wait waits for a time, or returns the cause of ctx if that ends first.
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
