package agent

import (
	"net"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/apiserver"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/podruntime"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/view"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// Options says what an [Agent] runs and how it shuts down. Pods, Runtime, Gates
// and View are required.
type Options struct {
	// Config is how long pods have when the host shuts down.
	Config plan.Config
	// Pods are to be started. Each needs a UID.
	Pods []*v1.Pod
	// Manifests are where Pods come from, if they can change; the zero value means that
	// they do not.
	Manifests Manifests
	// Runtime starts and stops them; the agent closes it.
	Runtime podruntime.Runtime
	// Source announces the shutdown of the host. Nil: SIGTERM and ShutdownAfter do.
	Source shutdown.Source
	// ShutdownAfter is how long after the pods have started the shutdown begins;
	// 0: it does not begin by itself.
	ShutdownAfter time.Duration
	// Signals brings SIGTERM and SIGINT; nil: none come.
	Signals <-chan os.Signal
	// Limit is how long the platform leaves a shutdown at most; 0: any time.
	Limit time.Duration
	// Listener serves /metrics and /healthz, and what of package api reads only; Control
	// serves all of that package. The agent closes both. Nil: nothing is served.
	Listener, Control net.Listener
	// StateDir keeps a shutdown's state over a restart of the agent; "": it is not
	// kept.
	StateDir string
	// APIServer shows node and pods, which are those of apiserver.StaticPods; the agent
	// closes it. Nil: there is none.
	APIServer *apiserver.Client
	// Policy says what becomes of the status of pods, with APIServer. Nil: they are
	// Failed.
	Policy func(shutdown.Kind) shutdown.PodPolicy
	// Gates switches features; it has all gates of lifecycle and shutdown.
	Gates featuregate.FeatureGate
	// View shows people what happens.
	View *view.View
	// Logger takes the events of pods; the zero value takes none.
	Logger klog.Logger
	// Notify tells the service manager, in the words of sd_notify(3). Nil: nobody
	// is told.
	Notify func(state string) error
}
