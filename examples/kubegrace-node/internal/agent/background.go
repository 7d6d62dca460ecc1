package agent

import (
	"context"
	"errors"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/login1"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podinfo"
	"github.com/kubegrace/kubegrace/shutdown/notice"
)

const (
	// listInterval is the time between two lists of the pods while nothing happens.
	listInterval = 10 * time.Second
	// retryInterval is the pause before what failed is tried again.
	retryInterval = 2 * time.Second
	// unitsInterval is how often it is looked whether stopped units are to be started.
	unitsInterval = 200 * time.Millisecond
	// busTimeout bounds one question to logind.
	busTimeout = 5 * time.Second
)

// pause waits, and returns false if ctx ends.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// repeat calls a function again and again until ctx ends: after an interval, or sooner if it has failed.
func repeat(ctx context.Context, interval time.Duration, call func() error) {
	for wait := time.Duration(0); pause(ctx, wait); {
		if wait = interval; call() != nil {
			wait = retryInterval
		}
	}
}

func (a *Agent) shuttingDown() bool { return a.manager.ShutdownStatus() != nil }

// keepInfo lists the pods now and then, and keeps what others have told about them. While pods are
// stopped the manager lists them.
func (a *Agent) keepInfo(ctx context.Context) {
	repeat(ctx, listInterval, func() error {
		if a.shuttingDown() {
			return nil
		}
		pods, err := a.listPods(ctx)
		if err == nil {
			a.missing.set(ctx, "state folder", a.opts.Info.Keep(pods))
		}
		return err
	})
}

// watchAPIServer reads the kubeconfig until it can be used, and then has the pods of the API server
// told.
func (a *Agent) watchAPIServer(ctx context.Context) {
	const name = "API server"
	if a.opts.APIServer == nil {
		return
	}
	a.missing.set(ctx, name, errors.New("it has not told its pods yet"))
	for {
		client, err := a.opts.APIServer.Load()
		if err == nil {
			err = podinfo.WatchAPIServer(ctx, client, a.opts.NodeName, a.opts.Info, func() { a.missing.set(ctx, name, nil) })
		}
		a.missing.set(ctx, name, err)
		if !pause(ctx, retryInterval) {
			return
		}
	}
}

// askKubelet has the kubelet's pods told while it runs. One that the agent has stopped is not missing.
func (a *Agent) askKubelet(ctx context.Context) {
	if a.opts.Kubelet == nil {
		return
	}
	repeat(ctx, listInterval, func() (err error) {
		var pods []v1.Pod
		if a.opts.Units.Stopped() == nil {
			pods, err = a.opts.Kubelet(ctx)
			a.opts.Info.Tell(podinfo.FromKubelet, pods)
		}
		a.missing.set(ctx, "kubelet's pods", err)
		return err
	})
}

// errKubeletHolds says that a kubelet drains this machine itself.
var errKubeletHolds = errors.New("a kubelet holds a shutdown lock of its own: it has a shutdownGracePeriod, and both would stop the same pods " +
	"at the same moment; set its shutdownGracePeriod to 0 and start it again")

// watchHost finds units that are to be stopped and cannot be, and a kubelet that drains this machine too.
func (a *Agent) watchHost(ctx context.Context) {
	repeat(ctx, listInterval, func() error {
		askCtx, cancel := context.WithTimeout(ctx, busTimeout)
		defer cancel()
		err := a.opts.Units.Check(askCtx)
		a.missing.set(ctx, "units to stop", err)
		if a.opts.UsesLogind {
			err = errors.Join(err, a.lookForKubelet(askCtx))
		}
		return err
	})
}

// lookForKubelet looks for the lock of a kubelet. Its error is that of a host which does not answer, as the manager says too.
func (a *Agent) lookForKubelet(ctx context.Context) error {
	var locks []login1.Lock
	err := login1.Ask(ctx, "", func(bus login1.Bus) (err error) {
		locks, err = bus.Locks(ctx)
		return err
	})
	if err != nil {
		return err
	}
	var held error
	if slices.ContainsFunc(locks, login1.Lock.IsKubelets) {
		held = errKubeletHolds
	}
	a.missing.set(ctx, "the only drain of this machine", held)
	return nil
}

// watchNotice announces what a cloud says.
func (a *Agent) watchNotice(ctx context.Context) {
	if a.opts.Notice == nil {
		return
	}
	provider := *a.opts.Notice
	provider.OnError = func(err error) { a.opts.Logger.Error(err, "Failed to ask the cloud for notices") }
	if err := notice.Watch(ctx, provider, a.manager.Trigger); err != nil {
		a.missing.set(ctx, "notices of the cloud", err)
	}
}

// stopsTimeout is how long units wait for the pods that are still being stopped when a shutdown is called off. A
// kubelet that is started before them spends seconds on each container that vanishes under it.
const stopsTimeout = 5 * time.Second

// startUnits starts the units that a shutdown has stopped, this agent's or a previous one's, when it
// is over and the host stays.
func (a *Agent) startUnits(ctx context.Context) {
	select {
	case <-a.manager.Ready():
	case <-ctx.Done():
	}
	var over time.Time // when no shutdown was under way any more; zero: one is
	repeat(ctx, unitsInterval, func() error {
		if a.shuttingDown() {
			over = time.Time{}
			return nil
		}
		if over.IsZero() {
			over = time.Now()
		}
		if len(a.kills.underWay()) > 0 && time.Since(over) < stopsTimeout {
			return nil
		}
		err := a.startUnitsNow(ctx)
		a.missing.set(ctx, "stopped units", err)
		return err
	})
}

// startUnitsNow starts what a shutdown has stopped, unless the host prepares for one: a kubelet that is
// started before logind has called it off gets no lock of its own.
func (a *Agent) startUnitsNow(ctx context.Context) error {
	if a.opts.Units.Stopped() == nil || a.opts.Units.Drained() {
		return nil
	}
	if a.opts.UsesLogind {
		askCtx, cancel := context.WithTimeout(ctx, busTimeout)
		defer cancel()
		var goesDown bool
		err := login1.Ask(askCtx, "", func(bus login1.Bus) (err error) {
			goesDown, err = bus.Preparing(askCtx)
			return err
		})
		if goesDown || err != nil && !errors.Is(err, login1.ErrNotRunning) { // a machine without logind goes down unheard
			return err
		}
	}
	if err := a.opts.Units.Start(ctx); err != nil {
		return err
	}
	a.opts.View.Say("What was stopped before the pods runs again.")
	return nil
}

// giveUpUnits starts the units that a shutdown has stopped before the agent leaves a host that stays.
func (a *Agent) giveUpUnits(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*closeTimeout)
	defer cancel()
	return a.startUnitsNow(ctx)
}
