//go:build go1.25

package shutdown_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// noPods is the list of a node without pods.
func noPods() []*v1.Pod { return nil }

// The error names the wrong option, and says what is wrong. ExampleNewManager shows the error for several wrong options.
func TestNewManagerRejectsWrongOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	valid := shutdown.Options{Config: config(30*time.Second, 10*time.Second), ListPods: shutdown.ListPodsFunc(noPods, nil), Killer: &shutdowntest.Killer{}, Node: &v1.Node{}}
	for text, change := range map[string]func(*shutdown.Options){
		"Options.ListPods is required":                                                                  func(o *shutdown.Options) { o.ListPods = nil },
		"Options.Killer is required":                                                                    func(o *shutdown.Options) { o.Killer = nil },
		"Options.Node is required with Options.Events":                                                  func(o *shutdown.Options) { o.Events, o.Node = &recorder{}, nil },
		"Options.StateDir is required with Options.RequireStateDir":                                     func(o *shutdown.Options) { o.RequireStateDir = true },
		"Options.Gates is a nil *shutdown_test.allOff":                                                  func(o *shutdown.Options) { o.Gates = (*allOff)(nil) },
		"shutdownGracePeriodCriticalPods {20s} must be <= shutdownGracePeriod {10s}":                    func(o *shutdown.Options) { o.Config = config(10*time.Second, 20*time.Second) },
		"requires feature gate GracefulNodeShutdown":                                                    func(o *shutdown.Options) { o.Gates = allOff{} },
		"Options.Killer is a nil shutdown.PodKillerFunc":                                                func(o *shutdown.Options) { o.Killer = shutdown.PodKillerFunc(nil) },
		"Options.Source is a nil *shutdowntest.Host":                                                    func(o *shutdown.Options) { o.Source = (*shutdowntest.Host)(nil) },
		"Options.Volumes is a nil shutdown_test.volumes":                                                func(o *shutdown.Options) { o.Volumes = volumes(nil) },
		"Options.Reporter is a nil *shutdowntest.Reporter":                                              func(o *shutdown.Options) { o.Reporter = (*shutdowntest.Reporter)(nil) },
		"Options.Events is a nil *shutdown_test.recorder":                                               func(o *shutdown.Options) { o.Events = (*recorder)(nil) },
		"Options.Node is a nil *v1.Node":                                                                func(o *shutdown.Options) { o.Node = (*v1.Node)(nil) },
		"Options.StateDir is not usable: stat /nonexistent":                                             func(o *shutdown.Options) { o.StateDir = "/nonexistent" },
		"is not a directory":                                                                            func(o *shutdown.Options) { o.StateDir = file },
		`Options.StateDir "state" is a relative path`:                                                   func(o *shutdown.Options) { o.StateDir = "state" },
		"shutdownGracePeriodByPodPriority[0].shutdownGracePeriodSeconds -1 must not be negative":        func(o *shutdown.Options) { o.Config = configWithList(priorityPeriod(0, -1)) },
		"shutdownGracePeriodByPodPriority[1].priority 7 duplicates shutdownGracePeriodByPodPriority[0]": func(o *shutdown.Options) { o.Config = configWithList(priorityPeriod(7, 1), priorityPeriod(7, 2)) },
	} {
		opts := valid
		change(&opts)
		_, err := shutdown.NewManager(opts)
		require.ErrorContains(t, err, text)
	}
	_, err := shutdown.NewManager(valid)
	require.NoError(t, err)
}

// With GracefulNodeShutdown off no host is watched: an announcement of the host changes nothing, and every pod is admitted.
// Trigger still drains.
func TestWithItsGateOffTheManagerOnlyDrainsOnTrigger(t *testing.T) {
	gate := featuregate.NewFeatureGate()
	require.NoError(t, shutdown.AddFeatureGates(gate))
	require.NoError(t, gate.Set("GracefulNodeShutdown=false"))
	inBubble(t, list(shutdowntest.Pod("web", regularPriority, 5)), func(t *testing.T, n *node) {
		n.opts.Gates = gate
		n.opts.Config = configWithList(priorityPeriod(0, 10))
		n.run()
		require.Empty(t, n.host.Calls(), "the host is not watched")
		n.announce()
		require.True(t, n.admits(n.pods[0]))
		require.NoError(t, n.m.Trigger(source.Event{}))
		synctest.Wait()
		require.Len(t, n.killer.Kills(), 1, "Trigger drains")
	})
}

// With GracefulNodeShutdownBasedOnPodPriority off, ShutdownGracePeriodByPodPriority is rejected, as in the kubelet. The fields
// ShutdownGracePeriod and ShutdownGracePeriodCriticalPods are used.
func TestWithThePriorityGateOffOnlyTheTwoFieldsAreUsed(t *testing.T) {
	gate := featuregate.NewFeatureGate()
	require.NoError(t, shutdown.AddFeatureGates(gate))
	require.NoError(t, gate.Set("GracefulNodeShutdownBasedOnPodPriority=false"))
	opts := shutdown.Options{ListPods: shutdown.ListPodsFunc(noPods, nil), Killer: &shutdowntest.Killer{}, Gates: gate}
	opts.Config = configWithList(priorityPeriod(0, 10))
	_, err := shutdown.NewManager(opts)
	require.ErrorContains(t, err, "requires feature gate GracefulNodeShutdownBasedOnPodPriority")
	opts.Config = config(30*time.Second, 10*time.Second)
	m, err := shutdown.NewManager(opts)
	require.NoError(t, err)
	require.Equal(t, 30*time.Second, m.Plan().Fitted.Pods(), "the time of all pods")
}

// A manager runs once, and Trigger works only while it runs.
func TestAManagerRunsOnce(t *testing.T) {
	inBubble(t, noPods(), func(t *testing.T, n *node) {
		m, err := shutdown.NewManager(n.opts)
		require.NoError(t, err)
		require.EqualError(t, m.Trigger(source.Event{}), "shutdown manager is not running")
		n.start(m)
		synctest.Wait()
		require.ErrorContains(t, m.Run(t.Context()), "has been run already")
		require.NoError(t, m.Trigger(source.Event{}))
		n.end()
		require.EqualError(t, m.Trigger(source.Event{}), "shutdown manager is not running")
		require.ErrorContains(t, m.Run(t.Context()), "has been run already")
	})
}

// hostThatNeverAnswers is a source whose Connect does not return before its context ends.
type hostThatNeverAnswers struct{}

// Connect waits for the end of its context.
func (hostThatNeverAnswers) Connect(ctx context.Context) (source.Session, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// Run closes Ready: when a lock is held, at once if there is no source, or when the context of Run ends.
func TestReadyIsClosedByRun(t *testing.T) {
	for name, test := range map[string]struct {
		set   func(n *node)
		ended bool // the test ends the context of Run before it waits for Ready
		locks int  // how many locks are held when Ready is closed
	}{
		"the lock is held":          {set: func(*node) {}, locks: 1},
		"there is no source":        {set: func(n *node) { n.opts.Source = nil }},
		"the host has not answered": {set: func(n *node) { n.opts.Source = hostThatNeverAnswers{} }, ended: true},
		"the context has ended":     {set: func(*node) {}, ended: true},
	} {
		subtestInBubble(t, name, noPods(), func(t *testing.T, n *node) {
			test.set(n)
			m, err := shutdown.NewManager(n.opts)
			require.NoError(t, err)
			ready := m.Ready()
			n.advance(time.Second)
			select {
			case <-ready:
				require.Fail(t, "Run has not begun")
			default:
			}
			n.start(m)
			if test.ended {
				n.end()
			}
			<-ready
			require.Equal(t, test.locks, n.host.Held())
		})
	}
}

// AddFeatureGates adds the gates with the kubelet's defaults, and may be called twice.
func TestAddFeatureGatesKeepsExistingGates(t *testing.T) {
	gate := featuregate.NewFeatureGate()
	require.NoError(t, shutdown.AddFeatureGates(gate))
	require.NoError(t, shutdown.AddFeatureGates(gate), "they are there already")
	require.True(t, gate.Enabled(shutdown.GracefulNodeShutdown))
	require.True(t, gate.Enabled(shutdown.GracefulNodeShutdownBasedOnPodPriority))
	require.False(t, gate.Enabled(shutdown.DaemonSetGracefulNodeShutdown), "it is alpha")
}

// The context of Run ends during a drain: batch has ended, web hangs, and etcd waits for its bucket. The error of Run names web
// and etcd, which was not killed. OnReport gets a report without an end, and the lock is released.
func TestTheEndOfRunInterruptsADrain(t *testing.T) {
	inBubble(t, append(webAndEtcd(), shutdowntest.Pod("batch", -5, 60)), func(t *testing.T, n *node) {
		var reports []shutdown.Report
		n.opts.OnReport = func(_ context.Context, r shutdown.Report) { reports = append(reports, r) }
		n.killer.Pods = map[string]shutdowntest.Behaviour{"web": {Hangs: true}}
		n.run()
		n.announce()
		n.advance(time.Second)
		err := n.stopRun()
		require.ErrorIs(t, err, shutdown.ErrInterrupted)
		require.ErrorContains(t, err, "pod default/web: ")
		require.ErrorContains(t, err, "pod default/etcd: not killed")
		require.NotContains(t, err.Error(), "batch", "it has ended")
		require.Len(t, n.killer.Kills(), 2, "batch and web")
		require.Len(t, reports, 1)
		require.Zero(t, reports[0].Ended, "the drain has no end")
		require.Len(t, reports[0].Pods, 2, "batch and web")
		require.Zero(t, n.host.Held(), "the lock is released")
	})
}

// The session is lost while Run ends, which happens when the machine stops the bus. Run returns no error.
func TestASessionThatIsLostAtTheEndOfRunIsNoError(t *testing.T) {
	for range 200 { // chance decides whether the manager sees the loss or the end first
		inBubble(t, list(shutdowntest.Pod("web", regularPriority, 5)), func(_ *testing.T, n *node) {
			n.run()
			n.host.Lose()
			n.end() // fails the test if Run returns an error
		})
	}
}
