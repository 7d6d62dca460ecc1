package agent

import (
	"context"
	"errors"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/login1"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podinfo"
	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/notice"
)

const (
	// listInterval is how often the agent asks, outside a shutdown: the runtime and the kubelet for their pods, the host for
	// its locks and units.
	listInterval = 10 * time.Second
	// retryInterval is the pause before the agent tries again what has failed.
	retryInterval = 2 * time.Second
	// unitsInterval is how often the agent checks whether it has to start stopped units again.
	unitsInterval = 200 * time.Millisecond
	// apiServer is the name under which missingParts has an API server that cannot be reached.
	apiServer = "API server"
	// stoppedUnits is the name under which missingParts has units that cannot be started again.
	stoppedUnits = "stopped units"
	// busTimeout bounds one connection to the bus, with all its calls.
	busTimeout = 5 * time.Second
)

// repeat calls a function at once and then at intervals, until ctx ends. After a call that fails it waits only
// for retryInterval.
func repeat(ctx context.Context, interval time.Duration, call func() error) {
	for untilNext := time.Duration(0); times.Sleep(ctx, untilNext) == nil; {
		untilNext = interval
		if err := call(); err != nil {
			untilNext = retryInterval
		}
	}
}

// shuttingDown reports whether a shutdown has begun, be it the host's, a drain or a cloud's notice.
func (a *Agent) shuttingDown() bool { return a.manager.ShutdownStatus() != nil }

// saveInfo saves Info, the pods' priorities and sidecars, in the state folder at intervals, for the next agent. During a
// shutdown it pauses, and onPlan saves Info.
//
// Before each save it removes from Info the pods that the runtime does not list. One of these may only be new. The watch of
// the API server delivers it again within a minute, but while the API server is missing nobody does, and none is removed.
func (a *Agent) saveInfo(ctx context.Context) {
	repeat(ctx, listInterval, func() error {
		if a.shuttingDown() {
			return nil
		}
		pods, err := a.listPods(ctx)
		if err != nil {
			return err
		}
		if !a.missingParts.has(apiServer) {
			a.opts.Info.ForgetAllBut(pods)
		}
		a.missingParts.update(ctx, "state folder", a.opts.Info.Save())
		return nil
	})
}

// watchAPIServer loads the kubeconfig until that succeeds. It then watches this node's pods on the API server, and
// stores in Info what the server knows about them. If the watch fails, it loads the kubeconfig again, which may have
// changed. The API server counts as missing until Info has all pods of the first list, and after a failure until Info has
// those of the next one.
func (a *Agent) watchAPIServer(ctx context.Context) {
	if a.opts.APIServer == nil {
		return
	}
	a.missingParts.update(ctx, apiServer, errors.New("it has not sent the node's pods yet"))
	pauses := pausesBetweenWatches()
	synced := func() {
		a.missingParts.update(ctx, apiServer, nil)
		pauses = pausesBetweenWatches()
	}
	for {
		client, err := a.opts.APIServer.LoadKubeconfig()
		if err == nil {
			err = podinfo.WatchAPIServer(ctx, client, a.opts.NodeName, a.opts.Info, synced)
		}
		a.missingParts.update(ctx, apiServer, err)
		if times.Sleep(ctx, pauses.Step()) != nil {
			return
		}
	}
}

// pausesBetweenWatches returns the pauses before a failed watch is repeated. They grow from retryInterval to half a minute.
// Their length is random, so that not all nodes ask at the same moment a server that is back.
func pausesBetweenWatches() wait.Backoff {
	return wait.Backoff{Duration: retryInterval, Factor: 2, Jitter: 0.2, Steps: 5, Cap: 30 * time.Second}
}

// askKubelet requests the kubelet's list of pods at intervals, and stores it in Info. While the agent has
// stopped units, of which the kubelet is usually one, it does not ask, and the kubelet's pods do not count as
// missing.
func (a *Agent) askKubelet(ctx context.Context) {
	if a.opts.Kubelet == nil {
		return
	}
	repeat(ctx, listInterval, func() (err error) {
		var pods []v1.Pod
		if a.opts.Units.Stopped() == nil {
			pods, err = a.opts.Kubelet(ctx)
			a.opts.Info.Record(podinfo.FromKubelet, pods)
		}
		a.missingParts.update(ctx, "kubelet's pods", err)
		return err
	})
}

// errKubeletLock is the reason why "the only drain of this machine" is missing.
var errKubeletLock = errors.New("a kubelet holds a shutdown lock of its own: it has a shutdownGracePeriod, and both would stop the same pods " +
	"at the same moment; set its shutdownGracePeriod to 0 and start it again")

// watchHost detects two mistakes in the host's configuration before a shutdown: a unit of --stop-unit that systemd does
// not know, and a kubelet that drains this machine too. missingParts then has them.
func (a *Agent) watchHost(ctx context.Context) {
	repeat(ctx, listInterval, func() error {
		askCtx, cancel := context.WithTimeout(ctx, busTimeout)
		defer cancel()
		err := a.opts.Units.CheckExist(askCtx)
		a.missingParts.update(ctx, "units to stop", err) // not with askCtx, after whose end update does nothing
		if a.opts.UsesLogind {
			err = errors.Join(err, a.checkSoleDrain(askCtx))
		}
		return err
	})
}

// checkSoleDrain stores in missingParts whether a kubelet holds a shutdown lock, and so drains this machine too. It returns
// an error only if logind does not answer, which the manager reports too.
func (a *Agent) checkSoleDrain(ctx context.Context) error {
	logind, err := login1.Look(ctx, "")
	if err != nil {
		return err
	}
	var why error
	if slices.ContainsFunc(logind.Locks, login1.Lock.IsKubelets) {
		why = errKubeletLock
	}
	a.missingParts.update(ctx, "the only drain of this machine", why)
	return nil
}

// watchNotice polls the cloud's metadata service until ctx ends, and begins or cancels a shutdown by its notices.
// Watch itself repeats requests that fail. It returns earlier only if the provider is not valid.
func (a *Agent) watchNotice(ctx context.Context) {
	if a.opts.Notice == nil {
		return
	}
	provider := *a.opts.Notice
	provider.OnError = func(err error) { a.opts.Logger.Error(err, "Failed to ask the cloud for notices") }
	if err := notice.Watch(ctx, provider, a.manager.Trigger); err != nil {
		a.missingParts.update(ctx, "notices of the cloud", err)
	}
}

// stopsTimeout is how long after the end of a shutdown startUnits waits for pods that are still being stopped. A
// kubelet that is started earlier loses seconds on each container that ends without having been stopped by it.
const stopsTimeout = 5 * time.Second

// startUnits starts the units again that this agent or a previous one has stopped, when the shutdown is over
// and the host stays up.
func (a *Agent) startUnits(ctx context.Context) {
	select {
	case <-a.manager.Ready(): // before that it is not known whether a shutdown is under way
	case <-ctx.Done():
	}
	var overSince time.Time // when startUnits first saw that no shutdown is under way; zero: one is
	repeat(ctx, unitsInterval, func() error {
		if a.shuttingDown() {
			overSince = time.Time{}
			return nil
		}
		if overSince.IsZero() {
			overSince = time.Now()
		}
		if len(a.killer.beingStopped()) > 0 && time.Since(overSince) < stopsTimeout {
			return nil
		}
		err := a.startUnitsNow(ctx)
		a.missingParts.update(ctx, stoppedUnits, err)
		return err
	})
}

// startUnitsNow starts the stopped units again. It does nothing while the node is drained. It also does nothing
// while logind still prepares for a shutdown: a kubelet requests its lock only once, at its start, and logind
// would refuse it.
func (a *Agent) startUnitsNow(ctx context.Context) error {
	if a.opts.Units.Stopped() == nil || a.opts.Units.IsNodeDrained() {
		return nil
	}
	if a.opts.UsesLogind {
		askCtx, cancel := context.WithTimeout(ctx, busTimeout)
		defer cancel()
		logind, err := login1.Look(askCtx, "")
		isUnknown := err != nil && !errors.Is(err, login1.ErrNotRunning) // a logind that does not run prepares nothing
		if logind.Preparing || isUnknown {
			return err
		}
	}
	if err := a.opts.Units.Start(ctx); err != nil {
		return err
	}
	a.opts.View.Say("What was stopped before the pods runs again.")
	return nil
}

// startUnitsAtExit starts the stopped units again when the agent leaves a host that stays up, because nobody
// else would. If the host goes down or is drained they stay stopped.
func (a *Agent) startUnitsAtExit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*closeTimeout)
	defer cancel()
	return a.startUnitsNow(ctx)
}
