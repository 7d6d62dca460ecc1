//go:build go1.25

package shutdown_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// A Manager that NewManager has not made, nil or the zero value, does not panic. Each method says what is wrong, and
// Admit admits nothing.
func TestAManagerThatNewManagerHasNotMadeIsAnError(t *testing.T) {
	const text = "the shutdown manager was not made with NewManager"
	for name, m := range map[string]*shutdown.Manager{"nil": nil, "zero": {}} {
		t.Run(name, func(t *testing.T) {
			<-m.Ready()
			require.EqualError(t, m.Run(t.Context()), text)
			require.EqualError(t, m.Trigger(source.Event{}), text)
			require.EqualError(t, m.ShutdownStatus(), text)
			_, err := m.TerminateAll(t.Context())
			require.EqualError(t, err, text)
			require.Equal(t, text, m.Admit(nil).Message)
			require.False(t, m.Admit(nil).Admit)
			require.EqualError(t, m.Inhibitor().Err, text)
			require.Equal(t, []string{text}, m.Plan().Warnings)
			_, found := m.LastReport()
			require.False(t, found)
		})
	}
}

// Before Run and after its end nobody watches the host: Inhibitor returns an error. A Manager without a Source needs no lock, and so
// returns no error.
func TestInhibitorReturnsAnErrorUnlessRunRuns(t *testing.T) {
	inBubble(t, noPods(), func(t *testing.T, n *node) {
		n.newManager()
		require.EqualError(t, n.m.Inhibitor().Err, "no inhibitor lock is held: Manager.Run has not been called")
		require.Empty(t, n.m.Inhibitor().Off, "it would say why no host is watched, but a Source is set")
		n.run()
		require.NoError(t, n.m.Inhibitor().Err)
		n.end()
		require.EqualError(t, n.m.Inhibitor().Err, "no inhibitor lock is held: Manager.Run has ended")

		n.opts.Source = nil
		n.newManager()
		require.NoError(t, n.m.Inhibitor().Err)
	})
}

// Options.Source is set, but Run has not been called within ten seconds. The next Admit logs that Run was forgotten, and later ones
// do not repeat it. Without a Source, or with Run, nothing is logged.
func TestPodsThatAreAdmittedWithoutRunAreLogged(t *testing.T) {
	for name, c := range map[string]struct {
		hasSource, runs bool
		lines           int
	}{
		"Run is forgotten": {hasSource: true, lines: 1},
		"Run is called":    {hasSource: true, runs: true},
		"without a Source": {},
	} {
		subtestInBubble(t, name, noPods(), func(t *testing.T, n *node) {
			klog.SetLogger(n.log.Logger)
			defer klog.SetLogger(klog.Logger{})
			if !c.hasSource {
				n.opts.Source = nil
			}
			n.newManager()
			require.True(t, n.admitsNewPods())
			if c.runs {
				n.start(n.m)
			}
			n.advance(10 * time.Second)
			require.True(t, n.admitsNewPods())
			require.True(t, n.admitsNewPods())
			synctest.Wait()
			lines := n.log.matching(func(l ktesting.LogEntry) bool { return strings.HasPrefix(l.Message, "Pods are admitted, but") })
			require.Len(t, lines, c.lines)
		})
	}
}

// Run with a context that has ended returns nil. One log line says why nothing happens.
func TestRunWithAnEndedContextIsLogged(t *testing.T) {
	inBubble(t, noPods(), func(t *testing.T, n *node) {
		n.newManager()
		ctx, end := context.WithCancel(klog.NewContext(t.Context(), n.log.Logger))
		end()
		require.NoError(t, n.m.Run(ctx))
		require.Len(t, n.log.all(), 1)
	})
}

// TerminateAll with a context that has ended kills no pod. The next call drains all pods. A third call, again with
// the ended context, returns the report of that drain.
func TestTerminateAllWithAnEndedContextKillsNoPod(t *testing.T) {
	inBubble(t, webAndEtcd(), func(t *testing.T, n *node) {
		n.run()
		ended, end := context.WithCancel(t.Context())
		end()
		report, err := n.m.TerminateAll(ended)
		require.EqualError(t, err, "TerminateAll has signalled no pod, because its context had ended: context canceled")
		require.Empty(t, report.Pods)
		report, err = n.m.TerminateAll(t.Context())
		require.NoError(t, err)
		require.Len(t, report.Pods, 2)
		again, err := n.m.TerminateAll(ended)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, report.Pods, again.Pods, "the report of the first drain")
	})
}

// Trigger with a misspelt kind begins no shutdown. Its error lists the kinds.
func TestTriggerRefusesAKindThatItDoesNotKnow(t *testing.T) {
	inBubble(t, noPods(), func(t *testing.T, n *node) {
		n.run()
		require.ErrorContains(t, n.m.Trigger(source.Event{Kind: "restart"}), `the kind of the event is "restart", it must be one of ["poweroff"`)
		require.NoError(t, n.m.ShutdownStatus())
	})
}

// ListPods lists pods that cannot be told apart. web and other have the same UID; web is listed three times, but the conflict
// is named once. Two more pods have no UID and the same name. Only one pod of each pair is killed.
func TestPodsThatCannotBeToldApartAreAnError(t *testing.T) {
	web, other := shutdowntest.Pod("web", regularPriority, 5), shutdowntest.Pod("other", regularPriority, 5)
	web.UID, other.UID = "1", "1"
	withoutUID := func() *v1.Pod { return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "no-uid"}} }
	inBubble(t, list(web, other, web, web.DeepCopy(), withoutUID(), withoutUID()), func(t *testing.T, n *node) {
		n.run()
		report, err := n.m.TerminateAll(t.Context())
		require.Error(t, err)
		require.Equal(t, []string{
			`Options.ListPods lists the pods default/web and default/other, which are both known as "1": only one of them is killed`,
			`Options.ListPods lists the pods default/no-uid and default/no-uid, which are both known as "default/no-uid": only one of them is killed`,
		}, report.Errors)
		require.Len(t, report.Pods, 2)
		require.Len(t, n.log.errors(), 2, "each conflict is logged once, although every bucket has a list")
	})
}

// ListPods lists a nil pod and one with neither a UID nor a name. No killer could find such a pod, so it is not killed, and the
// error says so.
func TestAPodWithoutAnIdentityIsAnError(t *testing.T) {
	inBubble(t, []*v1.Pod{nil, {}, shutdowntest.Pod("web", regularPriority, 5)}, func(t *testing.T, n *node) {
		n.run()
		report, err := n.m.TerminateAll(t.Context())
		require.EqualError(t, err, "Options.ListPods lists a pod that is nil or has neither a UID nor a name: it is not killed")
		require.Len(t, report.Pods, 1)
		require.Len(t, n.killer.Kills(), 1)
	})
}

// PolicyDelete deletes no pods if Options.Reporter is no StatusFlusher. The error of TerminateAll, which has the errors of
// the report, says so.
func TestPolicyDeleteNeedsAReporterThatDeletes(t *testing.T) {
	inBubble(t, noPods(), func(t *testing.T, n *node) {
		n.opts.Policy = func(source.Kind) shutdown.PodPolicy { return shutdown.PolicyDelete }
		n.run()
		_, err := n.m.TerminateAll(t.Context())
		require.ErrorContains(t, err, "deletes no pod: Options.Reporter is no StatusFlusher")
	})
}

// PriorityOf panics or hangs. Plan returns within 2 s all the same (1 s for ListPods and 1 s for PriorityOf), and a warning
// says what happened.
func TestPlanSurvivesAPriorityOfThatMisbehaves(t *testing.T) {
	for want, misbehave := range map[string]func(release chan struct{}){
		"panicked: a bug": func(chan struct{}) { panic("a bug") },
		"timed out":       func(release chan struct{}) { <-release },
	} {
		inBubble(t, []*v1.Pod{{Spec: v1.PodSpec{PriorityClassName: "batch"}}}, func(t *testing.T, n *node) {
			release := make(chan struct{})
			n.opts.Plan.PriorityOf = func(string) (int32, bool) {
				misbehave(release)
				return 0, false
			}
			n.run()
			began := time.Now()
			warnings := n.m.Plan().Warnings
			require.LessOrEqual(t, time.Since(began), 2*time.Second)
			require.Contains(t, warnings[len(warnings)-1], "priority classes that are not built in count as priority 0")
			require.Contains(t, warnings[len(warnings)-1], want)
			close(release)
		})
	}
}

// The host grants 5 s, and web uses all of them. No time is left for the list before the second bucket, which has no pods.
// The report does not blame ListPods, which takes only 1 ms.
func TestPodsThatUseAllTheTimeAreNoErrorOfTheList(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", regularPriority, 30)), func(t *testing.T, n *node) {
		n.setLimit(5 * time.Second)
		n.opts.ListPods = func(context.Context) ([]*v1.Pod, error) {
			<-time.After(time.Millisecond)
			return n.currentPods(), nil
		}
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.run()
		n.announce()
		n.advance(time.Minute)
		require.Empty(t, n.lastReport().Errors)
	})
}

// The list after the drain still has pods whose kills have succeeded. One log line says so if a kill took less than 10 ms, and so cannot
// have stopped anything, or if it ended at least 1 s before the list. No line is logged for a pod that ended less than 1 s
// before (an informer may lag), for a pod that had no container to stop, and for a pod that the list has as ended.
func TestAListThatStillHasStoppedPodsIsLogged(t *testing.T) {
	failed, terminated := shutdowntest.Pod("web", regularPriority, 30), shutdowntest.Pod("web", regularPriority, 30)
	failed.Status.Phase = v1.PodFailed
	terminated.Status.ContainerStatuses = []v1.ContainerStatus{{State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}}}
	for name, c := range map[string]struct {
		pods     []*v1.Pod
		kill     shutdowntest.Behaviour
		outcome  string // of the kills; "": the one that shutdowntest.Killer returns
		isLogged bool
	}{
		"the kills take no time": {pods: webAndEtcd(), isLogged: true},
		// web's kill, and then etcd's, take 1 s each, and the list follows.
		"a kill ended 1 s before the list":          {pods: webAndEtcd(), kill: shutdowntest.Behaviour{Takes: time.Second}, isLogged: true},
		"the only kill ended right before it":       {pods: list(shutdowntest.Pod("web", regularPriority, 30)), kill: shutdowntest.Behaviour{Takes: time.Second}},
		"no container was to be stopped":            {pods: webAndEtcd(), outcome: "NotFound"},
		"the list has the pod as failed":            {pods: list(failed)},
		"the list has its containers as terminated": {pods: list(terminated)},
	} {
		subtestInBubble(t, name, c.pods, func(t *testing.T, n *node) {
			n.killer.Default = c.kill
			n.opts.Killer = shutdown.PodKillerFunc(func(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
				result, err := n.killer.KillPod(ctx, pod, req)
				result.Outcome = cmp.Or(c.outcome, result.Outcome)
				return result, err
			})
			n.run()
			n.advance(time.Second)
			n.announce()
			n.advance(time.Minute)
			lines := n.log.matching(func(l ktesting.LogEntry) bool { return strings.HasPrefix(l.Message, "Options.ListPods still lists") })
			if c.isLogged {
				require.Len(t, lines, 1)
				require.Contains(t, lines[0].Message, "first: default/web)")
			} else {
				require.Empty(t, lines)
			}
		})
	}
}

// The API server refuses the final statuses, and also the node state (first case) or the readiness mark of etcd (second case). The
// report has each reason with what was refused, not only the newest error. In the first case the host grants only the 30 s of
// the pods, so the node state is published while they are killed. The drain does not wait for the status of etcd, which is killed
// last: for etcd the report only says that the time was spent.
func TestTheReportSaysWhyTheAPIServerHasNotAcceptedSomething(t *testing.T) {
	flush := func(*v1.Pod) error { <-time.After(time.Millisecond); return errors.New("no UID") }
	const flushError = "failed to flush the final statuses of 2 pods: default/web: no UID; default/etcd: the time for it was spent"
	for name, c := range map[string]struct {
		limit    time.Duration // 0: none
		reporter shutdown.Reporter
		errs     []string
	}{
		"the node state": {
			limit: 30 * time.Second, reporter: failingReporter{flushFunc: flush, publishErr: errors.New("no node")},
			errs: []string{"failed to publish the node state: no node", flushError},
		},
		"the readiness marks": {
			reporter: failingMarker{failingReporter{flushFunc: flush}},
			errs:     []string{"failed to mark 1 pods not ready: no patch", flushError},
		},
	} {
		subtestInBubble(t, name, webAndEtcd(), func(t *testing.T, n *node) {
			n.setLimit(c.limit)
			n.opts.Reporter = c.reporter
			n.run()
			n.announce()
			n.advance(time.Minute)
			require.Equal(t, c.errs, n.lastReport().Errors)
		})
	}
}

// failingReporter is a flushFunc whose PublishNode returns an error.
type failingReporter struct {
	flushFunc

	publishErr error // nil: PublishNode succeeds
}

// PublishNode returns r.publishErr.
func (r failingReporter) PublishNode(context.Context, shutdown.NodeState) error { return r.publishErr }

// failingMarker is a failingReporter that cannot mark the pod etcd as not ready.
type failingMarker struct{ failingReporter }

// MarkNotReady returns an error for etcd, which asks for a pause that is longer than the time for the mark.
func (failingMarker) MarkNotReady(_ context.Context, pod *v1.Pod) error {
	if pod.Name == "etcd" {
		return apierrors.NewTooManyRequests("no patch", 5)
	}
	return nil
}

// RestoreReadiness does nothing.
func (failingMarker) RestoreReadiness(context.Context, *v1.Pod) error { return nil }

// A bucket of ShutdownGracePeriodByPodPriority has 0 s, as after a misspelt shutdownGracePeriodSeconds. Run logs the bucket's
// priority. If ShutdownGracePeriod and ShutdownGracePeriodCriticalPods are used instead, 0 s for critical pods is the default, and is
// not logged.
func TestABucketWithoutTimeIsLogged(t *testing.T) {
	for name, c := range map[string]struct {
		config plan.Config
		want   any // the logged priorities; nil: there is no such line
	}{
		"ShutdownGracePeriodByPodPriority": {configWithList(priorityPeriod(0, 0), priorityPeriod(1000, 10)), []int32{0}},
		"ShutdownGracePeriod":              {config(30*time.Second, 0), nil},
	} {
		subtestInBubble(t, name, noPods(), func(t *testing.T, n *node) {
			n.opts.Config = c.config
			n.run()
			require.Equal(t, c.want, n.log.valuesWith("priorities")["priorities"])
		})
	}
}

// NewManager rejects a timeout of more than a day, such as math.MaxInt64, because the host would be asked for that time. 24 h
// are valid.
func TestATimeoutOfMoreThanADayIsAnError(t *testing.T) {
	inBubble(t, noPods(), func(t *testing.T, n *node) {
		n.opts.Plan.PrepareTimeout, n.opts.Plan.UnmountTimeout = math.MaxInt64, 24*time.Hour
		_, err := shutdown.NewManager(n.opts)
		require.EqualError(t, err, "invalid shutdown options: Options.Plan.PrepareTimeout is 2562047h47m16.854775807s, it must be at most 24h0m0s: the host is asked for this time")
	})
}

// The killer gives the pod another UID and another name. ListPods returns the same *v1.Pod, so the pod is killed again, as
// another one. The report names the pod by the name with which it was listed first.
func TestAKillerThatChangesThePodIsReported(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", regularPriority, 5)), func(t *testing.T, n *node) {
		n.opts.Killer = shutdown.PodKillerFunc(func(_ context.Context, pod *v1.Pod, _ shutdown.KillRequest) (shutdown.KillResult, error) {
			pod.UID, pod.Name = "changed", "changed"
			return shutdown.KillResult{Outcome: "Changed"}, nil
		})
		n.run()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, "default/web", fmt.Sprint(n.log.valuesWith("outcome")["pod"]))
		require.Equal(t, []string{"Options.Killer has changed the UID or the name of pod default/web, which may be killed twice"}, n.lastReport().Errors)
	})
}

// PriorityOf hangs in a drain. The report blames PriorityOf alone, not the list of the pods.
func TestAPriorityOfThatHangsIsNoErrorOfTheList(t *testing.T) {
	batch := shutdowntest.Pod("batch", regularPriority, 5)
	batch.Spec.Priority, batch.Spec.PriorityClassName = nil, "batch"
	inBubble(t, list(batch), func(t *testing.T, n *node) {
		release := make(chan struct{})
		n.opts.Plan.PriorityOf = func(string) (int32, bool) {
			<-release
			return 0, false
		}
		n.run()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, []string{"failed to get the values of priority classes: timed out"}, n.lastReport().Errors)
		close(release)
	})
}

// StoredReport returns an error, not an empty report, for a folder that does not exist or is a file, and for an unusable
// log. A folder without a log has no report.
func TestStoredReportOfAnUnusableFolderIsAnError(t *testing.T) {
	_, _, err := shutdown.StoredReport("")
	require.EqualError(t, err, "no state folder is given: dir is empty")
	_, _, err = shutdown.StoredReport("/nonexistent/folder")
	require.ErrorContains(t, err, "failed to read the state folder: stat /nonexistent/folder")
	_, _, err = shutdown.StoredReport("/dev/null")
	require.EqualError(t, err, `the state folder "/dev/null" is no directory`)
	dir := t.TempDir()
	_, found, err := shutdown.StoredReport(dir)
	require.NoError(t, err)
	require.False(t, found)
	file := filepath.Join(dir, logFile)
	require.NoError(t, os.WriteFile(file, []byte(`{"version": 99}`), 0o600))
	_, found, err = shutdown.StoredReport(dir)
	require.ErrorContains(t, err, file)
	require.False(t, found)
}
