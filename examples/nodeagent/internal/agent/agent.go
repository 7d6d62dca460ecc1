package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// closeTimeout bounds the wait for hooks and stops that are under way when the agent
// ends.
const closeTimeout = 5 * time.Second

// errLeaving is the cause of the end of all goroutines when the agent has nothing more to
// do.
var errLeaving = errors.New("the agent leaves")

// Agent runs the pods of one node. Make one with [New].
type Agent struct {
	opts       Options
	registry   *prometheus.Registry
	pods       *pods
	terminator *lifecycle.Terminator
	manager    *shutdown.Manager
	killer     killer
	backOff    *flowcontrol.Backoff
	keepers    sync.WaitGroup         // the goroutines that keep containers and mirrors
	ran        atomic.Bool            // Run was called
	started    chan struct{}          // closed when the start of all pods has succeeded or failed
	requests   chan func(*loop) error // functions that clients want the loop to call
	left       chan struct{}          // closed when the loop has ended
}

// New makes an agent. It starts nothing.
func New(opts Options) (*Agent, error) {
	a := &Agent{
		opts: opts, registry: prometheus.NewRegistry(), started: make(chan struct{}),
		backOff: flowcontrol.NewBackOff(firstBackOff, mostBackOff), requests: make(chan func(*loop) error), left: make(chan struct{}),
	}
	a.pods = newPods(opts.Pods, a.schedule())
	err := errors.Join(
		a.registry.Register(collectors.NewGoCollector()),
		a.registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})),
		a.newTerminator(),
	)
	if err == nil {
		err = a.newManager()
	}
	if err != nil {
		return nil, fmt.Errorf("failed to put the agent together: %w", err)
	}
	return a, nil
}

// Plan returns what a shutdown would do now; before Run, what it would do to all pods.
func (a *Agent) Plan() plan.Plan { return a.manager.Plan() }

// Run starts the pods. It returns when a signal ends the agent, when a shutdown without a
// host is done, or when ctx ends. Pods that were not drained keep running. The error
// names the pods that could not be stopped.
func (a *Agent) Run(ctx context.Context) error {
	outside := context.WithoutCancel(ctx)
	a.ran.Store(true)
	ctx, leave := context.WithCancelCause(ctx)
	a.adopt(ctx) // before the manager can find a shutdown to go on with
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return a.manager.Run(ctx) })
	work.Go(func() error { return a.serve(ctx) })
	work.Go(func() error { return a.serveControl(ctx) })
	work.Go(func() error { a.startPods(ctx); return nil })
	work.Go(func() error { a.follow(ctx); return nil })
	l := newLoop(a)
	work.Go(func() error {
		defer leave(errLeaving)
		defer close(a.left)
		return l.run(ctx)
	})
	failed := work.Wait()
	leave(errLeaving)
	a.keepers.Wait()
	err := errors.Join(failed, a.close(outside))
	l.abandoned()
	return err
}

// close closes everything and leaves the pods as they are.
func (a *Agent) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	a.notify("STOPPING=1")
	err := errors.Join(a.terminator.Close(ctx), a.opts.Runtime.Close())
	if a.opts.APIServer != nil {
		a.opts.APIServer.Close()
	}
	return err
}

// notify notifies the service manager. A failure is only logged.
func (a *Agent) notify(state string) {
	if a.opts.Notify == nil {
		return
	}
	if err := a.opts.Notify(state); err != nil {
		a.opts.Logger.Error(err, "Failed to notify the service manager", "state", state)
	}
}
