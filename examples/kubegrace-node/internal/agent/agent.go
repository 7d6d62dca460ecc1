package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

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
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// closeTimeout bounds the wait, when the agent ends, for the hooks and the stops of containers that are under way.
const closeTimeout = 5 * time.Second

// errLeaving is the cause with which the agent cancels its context when it leaves, so that all goroutines end. It
// is also the answer to clients whose requests the leaving agent cannot serve, because their contexts end too.
var errLeaving = errors.New("the agent leaves")

// Runtime is where the pods run: a criruntime.Runtime, or package embedded, which simulates pods.
type Runtime interface {
	lifecycle.Runtime
	lifecycle.CommandRunner
	lifecycle.ExitWatcher
	// Pods lists the pods that run. The caller changes neither the slice nor the pods.
	Pods(ctx context.Context) ([]*v1.Pod, error)
	// PodStatus returns the status of a pod with the exit codes of the containers that have ended.
	PodStatus(ctx context.Context, pod *v1.Pod) *v1.PodStatus
	// StopPodSandbox releases the network of a pod whose containers have ended.
	StopPodSandbox(ctx context.Context, pod *v1.Pod) error
	Close() error
}

// Options configure an [Agent]. Runtime, Gates and View are required.
type Options struct {
	// Config has the grace periods of a node shutdown.
	Config plan.Config
	// Runtime has the pods. The agent closes it.
	Runtime Runtime
	// Source announces the shutdown of the host. Nil: only a drain by request, DrainAfter or Notice begins
	// one.
	Source source.Source
	// Notice is the metadata service of a cloud, whose notice that the machine will end begins a shutdown. Nil
	// for none.
	Notice *notice.Provider
	// Units are stopped before the first pod, and started again if the host stays up. Nil for none.
	Units *units.Keeper
	// UsesLogind says that Source is logind. The agent then looks for a kubelet's lock, and starts units again
	// only when logind no longer prepares for a shutdown.
	UsesLogind bool
	// Info stores what APIServer and Kubelet know about the pods and Runtime does not: priorities and
	// sidecars. Nil for none.
	Info *podinfo.Info
	// APIServer knows the pods of this node, and receives their final statuses. Nil for none. NodeName is the
	// name of this node's object there.
	APIServer *apiserver.Client
	NodeName  string
	// Kubelet requests the kubelet's own list of pods. Nil: the kubelet is not asked.
	Kubelet func(ctx context.Context) ([]v1.Pod, error)
	// Policy decides what happens to the statuses of the pods on the APIServer. Nil means Failed.
	Policy func(source.Kind) shutdown.PodPolicy
	// Limit is the longest delay that the platform grants a shutdown. 0 means no limit.
	Limit time.Duration
	// StateDir is the folder that stores the state of a shutdown, so that the next agent continues it. ""
	// stores nothing.
	StateDir string
	// Listen opens the listener for /metrics and /healthz, Control the one for the requests of package api.
	// Each is called again until it succeeds. Nil: nothing is served.
	Listen, Control func() (net.Listener, error)
	// DrainAfter is for demonstrations: the agent drains all pods this long after its start, and then leaves.
	// 0: never.
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
	opts         Options
	registry     *prometheus.Registry
	terminator   *lifecycle.Terminator
	manager      *shutdown.Manager
	killer       *killer
	hooks        hookFolder
	missingParts *missingList
	reports      chan shutdown.Report // of shutdowns whose pods have ended
	// drainClients hands the loop the channels on which clients wait for the report of a drain. It is unbuffered.
	drainClients chan chan<- shutdown.Report
	loopEnded    chan struct{} // closed when the loop has ended

	changingDrain sync.Mutex // held while a drain begins or is withdrawn
}

// New makes an agent. It opens nothing: Run does.
func New(opts Options) (*Agent, error) {
	if opts.Units == nil {
		opts.Units, _ = units.New("", nil) // cannot fail, because "" means that there is no file
	}
	if opts.Info == nil {
		opts.Info, _ = podinfo.New("", nil) // cannot fail either
	}
	a := &Agent{
		opts: opts, registry: prometheus.NewRegistry(), missingParts: newMissingList(opts.Logger), hooks: hookFolderIn(opts.StateDir),
		reports: make(chan shutdown.Report, 16), drainClients: make(chan chan<- shutdown.Report), loopEnded: make(chan struct{}),
	}
	a.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	err := a.newTerminator()
	if err == nil {
		err = a.newManager()
	}
	if err != nil {
		return nil, fmt.Errorf("failed to put the agent together: %w", err)
	}
	return a, nil
}

// Run delays the host's shutdown, and drains its pods when the shutdown comes. It returns when a signal ends
// the agent, when a demonstration is over, or when ctx ends, and at once if another agent uses the state
// folder. Pods that were not told to stop keep running.
func (a *Agent) Run(ctx context.Context) error {
	closeCtx := context.WithoutCancel(ctx)
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(errLeaving)
	managerEnded := make(chan error, 1)
	go func() { managerEnded <- a.manager.Run(ctx) }() // first, because it takes the lock and needs nothing of what follows
	var background sync.WaitGroup
	for _, work := range []func(context.Context){a.saveInfo, a.watchAPIServer, a.askKubelet, a.watchHost, a.watchNotice, a.startUnits, a.serve, a.serveControl} {
		background.Go(func() { work(ctx) })
	}
	l := newLoop(a)
	loopErrs := make(chan error, 1)
	go func() {
		defer close(a.loopEnded)
		loopErrs <- l.run(ctx)
	}()
	var loopErr, managerErr error
	select {
	case loopErr = <-loopErrs:
		leave(errLeaving)
		managerErr = <-managerEnded
	case managerErr = <-managerEnded: // another agent has the state folder, or ctx has ended
		leave(errLeaving)
		loopErr = <-loopErrs
	}
	background.Wait()
	return errors.Join(loopErr, managerErr, a.startUnitsAtExit(closeCtx), a.close(closeCtx))
}

// close tells the service manager that the agent ends, and closes terminator and runtime. It stops no pod.
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
