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

// Options configure an [Agent]. Pods, Runtime, Gates and View are required.
type Options struct {
	// Config has the grace periods of a node shutdown.
	Config plan.Config
	// Pods are the pods to start. Each needs a UID.
	Pods []*v1.Pod
	// Manifests are the files that Pods come from. The zero value means that they do not
	// change.
	Manifests Manifests
	// Runtime starts and stops the pods. The agent closes it.
	Runtime podruntime.Runtime
	// Source announces the shutdown of the host. Nil means that SIGTERM and ShutdownAfter
	// start a shutdown.
	Source shutdown.Source
	// ShutdownAfter is how long after the start of the pods a shutdown begins. 0 means
	// never.
	ShutdownAfter time.Duration
	// Signals delivers SIGTERM and SIGINT. Nil means that there are none.
	Signals <-chan os.Signal
	// Limit is the longest delay that the platform grants a shutdown. 0 means no limit.
	Limit time.Duration
	// Listener serves /metrics, /healthz and the read-only part of package api; Control
	// serves all of package api. The agent closes both. Nil means that nothing is served.
	Listener, Control net.Listener
	// StateDir is the folder that keeps the state of a shutdown across a restart of the
	// agent. Empty means that it is not kept.
	StateDir string
	// APIServer reports the node and the pods, which must be those of
	// apiserver.StaticPods. The agent closes it. Nil means that there is no API server.
	APIServer *apiserver.Client
	// Policy decides what happens to the statuses of the pods on the APIServer. Nil means
	// Failed.
	Policy func(shutdown.Kind) shutdown.PodPolicy
	// Gates are the feature gates; they must have all gates of lifecycle and shutdown.
	Gates featuregate.FeatureGate
	// View shows the progress to people.
	View *view.View
	// Logger receives the events of pods. The zero value drops them.
	Logger klog.Logger
	// Notify notifies the service manager with messages of sd_notify(3). Nil means that
	// there is none.
	Notify func(state string) error
}
