package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/apiserver"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podinfo"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/units"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/view"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/notice"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// closeTimeout bounds the wait for hooks and stops that are under way when the agent
// ends.
const closeTimeout = 5 * time.Second

// errLeaving is the cause that cancels all goroutines when the agent has nothing more to
// do.
var errLeaving = errors.New("the agent leaves")

// Runtime is where the pods run: a criruntime.Runtime, or one that plays them.
type Runtime interface {
	lifecycle.Runtime
	lifecycle.CommandRunner
	lifecycle.ExitWatcher
	Pods(ctx context.Context) ([]*v1.Pod, error)
	PodStatus(ctx context.Context, pod *v1.Pod) *v1.PodStatus
	StopPodSandbox(ctx context.Context, pod *v1.Pod) error
	Close() error
}

// Options configure an [Agent]. Runtime, Gates and View are required.
type Options struct {
	// Config has the grace periods of a node shutdown.
	Config plan.Config
	// Runtime has the pods. The agent closes it.
	Runtime Runtime
	// Source announces the shutdown of the host. Nil: only drains and Notice begin one.
	Source source.Source
	// Notice is the metadata service of a cloud, nil for none.
	Notice *notice.Provider
	// Units are stopped before pods are, and started again afterwards. Nil for none.
	Units *units.Keeper
	// UsesLogind says that units wait for logind to call a shutdown off, before they are started again.
	UsesLogind bool
	// Info is told of pods by APIServer and Kubelet, and adds that to those of Runtime. Nil for none.
	Info *podinfo.Info
	// APIServer has the pods and is told of their ends. Nil for none. NodeName is the node's name there.
	APIServer *apiserver.Client
	NodeName  string
	// Kubelet returns the kubelet's own list of pods. Nil: it is not asked.
	Kubelet func(ctx context.Context) ([]v1.Pod, error)
	// Policy decides what happens to the statuses of the pods on the APIServer. Nil means Failed.
	Policy func(source.Kind) shutdown.PodPolicy
	// Limit is the longest delay that the platform grants a shutdown. 0 means no limit.
	Limit time.Duration
	// StateDir is the folder that keeps the state of a shutdown. "" means that it is not kept.
	StateDir string
	// Listen opens the listener of /metrics and /healthz, Control that of all requests of package
	// api. They are called again until they succeed. Nil: nothing is served.
	Listen, Control func() (net.Listener, error)
	// DrainAfter is how long after the start all pods are drained, once. The agent then leaves. 0: never.
	DrainAfter time.Duration
	// Signals delivers SIGTERM and SIGINT. Nil means that there are none.
	Signals <-chan os.Signal
	// Gates are the feature gates; they must have all gates of lifecycle and shutdown.
	Gates featuregate.FeatureGate
	// View shows the progress to people.
	View *view.View
	// Logger receives the events of pods. The zero value drops them.
	Logger klog.Logger
	// Notify notifies the service manager with messages of sd_notify(3). Nil: there is none.
	Notify func(state string) error
}

// Agent drains the pods of one node. Make one with [New].
type Agent struct {
	opts       Options
	registry   *prometheus.Registry
	terminator *lifecycle.Terminator
	manager    *shutdown.Manager
	kills      *kills
	hooks      hooks
	missing    *missing
	reports    chan shutdown.Report // of shutdowns whose pods have ended
	requests   chan func(*loop)     // the loop calls them
	loopEnded  chan struct{}        // closed when the loop has ended
}

// New makes an agent. It opens nothing.
func New(opts Options) (*Agent, error) {
	if opts.Units == nil {
		opts.Units, _ = units.New("", nil) // has no file
	}
	if opts.Info == nil {
		opts.Info, _ = podinfo.New("", nil) // has no file
	}
	a := &Agent{
		opts: opts, registry: prometheus.NewRegistry(), missing: newMissing(opts.Logger), hooks: hooksIn(opts.StateDir),
		reports: make(chan shutdown.Report, 16), requests: make(chan func(*loop)), loopEnded: make(chan struct{}),
	}
	a.kills = newKills(a.schedule())
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

// Plan returns what a shutdown would do now.
func (a *Agent) Plan() plan.Plan { return a.manager.Plan() }

// Run holds the host and drains its pods when it shuts down. It returns when a signal ends the
// agent, when a demonstration is over, or when ctx ends. Pods that were not drained run on.
func (a *Agent) Run(ctx context.Context) error {
	closeCtx := context.WithoutCancel(ctx)
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(errLeaving)
	managed := make(chan error, 1)
	go func() { managed <- a.manager.Run(ctx) }() // the host is held before anything else is opened
	var background sync.WaitGroup
	for _, work := range []func(context.Context){a.keepInfo, a.watchAPIServer, a.askKubelet, a.watchHost, a.watchNotice, a.startUnits, a.serve, a.serveControl} {
		background.Go(func() { work(ctx) })
	}
	l := newLoop(a)
	looped := make(chan error, 1)
	go func() {
		defer close(a.loopEnded)
		looped <- l.run(ctx)
	}()
	var err, managedErr error
	select {
	case err = <-looped:
		leave(errLeaving)
		managedErr = <-managed
	case managedErr = <-managed: // another agent has the state folder, or ctx has ended
		leave(errLeaving)
		err = <-looped
	}
	background.Wait()
	return errors.Join(err, managedErr, a.giveUpUnits(closeCtx), a.close(closeCtx))
}

// close closes what the agent was given, and leaves the pods as they are.
func (a *Agent) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	a.notify("STOPPING=1")
	return errors.Join(a.terminator.Close(ctx), a.opts.Runtime.Close())
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
