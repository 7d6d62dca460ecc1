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

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// closeTimeout bounds the wait for hooks and stops that are under way when the agent
// ends.
const closeTimeout = 5 * time.Second

// errLeaving is the cause that cancels all goroutines when the agent has nothing more to
// do.
var errLeaving = errors.New("the agent leaves")

// Agent runs the pods of one node. Make one with [New].
type Agent struct {
	opts       Options
	registry   *prometheus.Registry
	pods       *pods
	terminator *lifecycle.Terminator
	restarter  *restarter
	manager    *shutdown.Manager
	killer     killer
	background sync.WaitGroup         // goroutines that keep mirror pods and start new pods
	runCalled  atomic.Bool            // Run was called
	startsDone chan struct{}          // closed when the start of all pods has succeeded or failed
	loopCalls  chan func(*loop) error // functions that the loop calls for clients
	loopEnded  chan struct{}          // closed when the loop has ended
}

// New makes an agent. It starts nothing.
func New(opts Options) (*Agent, error) {
	a := &Agent{
		opts: opts, registry: prometheus.NewRegistry(),
		startsDone: make(chan struct{}), loopCalls: make(chan func(*loop) error), loopEnded: make(chan struct{}),
	}
	a.pods = newPods(opts.Pods, a.schedule())
	err := errors.Join(
		a.registry.Register(collectors.NewGoCollector()),
		a.registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})),
		a.newTerminator(),
	)
	if err == nil {
		a.restarter = newRestarter(opts.Runtime, a.terminator)
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
	closeCtx := context.WithoutCancel(ctx)
	a.runCalled.Store(true)
	ctx, leave := context.WithCancelCause(ctx)
	a.adoptPods(ctx) // before the manager continues a shutdown that a former agent began
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return a.manager.Run(ctx) })
	work.Go(func() error { return a.serve(ctx) })
	work.Go(func() error { return a.serveControl(ctx) })
	work.Go(func() error { a.startPods(ctx); return nil })
	work.Go(func() error { a.followManifests(ctx); return nil })
	l := newLoop(a)
	work.Go(func() error {
		defer leave(errLeaving)
		defer close(a.loopEnded)
		return l.run(ctx)
	})
	err := work.Wait()
	leave(errLeaving)
	a.background.Wait()
	a.restarter.wait() // after the goroutines that start pods, which add to it
	err = errors.Join(err, a.close(closeCtx))
	l.showAbandoned()
	return err
}

// close closes what the agent has opened or was given, and leaves the pods as they are.
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

// notify sends a state of sd_notify(3) to the service manager. A failure is only logged.
func (a *Agent) notify(state string) {
	if a.opts.Notify == nil {
		return
	}
	if err := a.opts.Notify(state); err != nil {
		a.opts.Logger.Error(err, "Failed to notify the service manager", "state", state)
	}
}
