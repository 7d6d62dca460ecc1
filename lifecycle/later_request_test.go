//go:build go1.25

package lifecycle_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// A container that joins a shortened termination has the shorter grace period, and its hook's
// context has that deadline.
func TestAContainerThatJoinsAShortenedTermination(t *testing.T) {
	inBubble(t, 60, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		require.True(b, termination.Shorten(5))
		b.addMain("web", sleep(30), lifecycletest.Script{})
		b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-termination.Done()
		hook := termination.Result().Containers[1].Hook
		require.Equal(b, lifecycle.HookResult{Outcome: lifecycle.HookCut, Cause: lifecycle.Shortened, Took: 5 * time.Second}, hook)
	})
}

// The reason of a further kill does not shorten the first one, only a grace period does.
func TestSecondKillContainerWithAReasonOfLessGrace(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
		b.pod.Spec.Containers[0].LivenessProbe = &v1.Probe{TerminationGracePeriodSeconds: ptr.To(int64(7))}
		var wg sync.WaitGroup
		for _, reason := range []graceperiod.KillReason{graceperiod.ReasonUnknown, graceperiod.ReasonLivenessProbe} {
			wg.Go(func() {
				_, err := b.KillContainer(b.Context(), b.pod, named("app"), lifecycle.ContainerRequest{Reason: reason})
				require.NoError(b, err)
			})
			synctest.Wait()
		}
		wg.Wait()
		require.Equal(b, [][2]time.Duration{{30, 0}}, b.stopsOf("app"))
	})
}

// Each container of which the ID is not known is in the result once.
func TestUnknownContainersOfALaterRequest(t *testing.T) {
	inBubble(t, 60, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: time.Second})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		for range 2 {
			b.Terminate(b.Context(), b.pod, lifecycle.Request{Containers: []lifecycle.Container{{Name: "one"}, {Name: "two"}}})
		}
		result, err := termination.Wait(b.Context())
		require.ErrorIs(b, err, lifecycle.ErrUnknownContainers)
		var names []string
		for _, c := range result.Containers {
			names = append(names, c.Name)
		}
		require.Equal(b, []string{"app", "one", "two"}, names)
	})
}

// A container that is being killed is known, even if the status of its pod says nothing.
func TestTerminationWithoutStatusDuringAKill(t *testing.T) {
	inBubble(t, 60, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 5 * time.Second})
		b.pod.Status = v1.PodStatus{}
		ended := make(chan error, 1)
		go func() {
			_, err := b.KillContainer(b.Context(), b.pod, named("app"), lifecycle.ContainerRequest{})
			ended <- err
		}()
		synctest.Wait()
		require.Len(b, b.kill().Containers, 1)
		require.NoError(b, <-ended)
	})
}

func TestPostStartAfterClose(t *testing.T) {
	inBubble(t, 60, func(b *bed) {
		app := b.startWithPostStart("app")
		require.NoError(b, b.Close(b.Context()))
		for range 2 {
			require.ErrorIs(b, b.PostStart(b.Context(), b.pod, app), lifecycle.AgentStopping)
		}
	})
}

// atEachMessage is a logger that calls a function for each message.
type atEachMessage func()

func (do atEachMessage) Init(klog.RuntimeInfo)          {}
func (do atEachMessage) Enabled(int) bool               { return true }
func (do atEachMessage) Info(int, string, ...any)       { do() }
func (do atEachMessage) Error(error, string, ...any)    { do() }
func (do atEachMessage) WithValues(...any) klog.LogSink { return do }
func (do atEachMessage) WithName(string) klog.LogSink   { return do }

// The terminator holds no mutex while it logs about the failures of a stop.
func TestALoggerMayAskForTheTermination(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{FailStops: 1})
		var messages atomic.Int32
		ctx := klog.NewContext(b.Context(), klog.New(atEachMessage(func() {
			if termination, found := b.Termination(b.pod.UID); found {
				_ = termination.Deadline()
				messages.Add(1)
			}
		})))
		_, err := b.KillPod(ctx, b.pod, lifecycle.Request{})
		require.NoError(b, err)
		require.GreaterOrEqual(b, messages.Load(), int32(2), "its failure, and how it ended")
	})
}

// A hook that a second kill has cut short says so.
func TestAKillThatASecondOneShortens(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", sleep(100), lifecycletest.Script{})
		var wg sync.WaitGroup
		for _, seconds := range []int64{30, 5} {
			wg.Go(func() {
				r, err := b.KillContainer(b.Context(), b.pod, named("app"), lifecycle.ContainerRequest{GracePeriodSeconds: &seconds})
				require.NoError(b, err)
				require.Equal(b, lifecycle.Shortened, r.Hook.Cause)
			})
			synctest.Wait()
		}
		wg.Wait()
	})
}

// A container that has ended and is killed again, after its deadline, has the grace period of the
// second request.
func TestASecondKillLongAfterTheFirst(t *testing.T) {
	inLife(t, func(b *lifeBed) {
		for i := range 2 {
			b.rt.Start("a", lifecycletest.Script{})
			_, err := b.life.KillContainer(b.ctx, lifecycle.Container{Name: "app", ID: "a"}, lifecycle.ContainerRequest{})
			require.NoError(b, err)
			require.EqualValues(b, 60, b.rt.Stops()[i].TimeoutSeconds)
			<-time.After(5 * time.Minute)
		}
	})
	inLife(t, func(b *lifeBed) { // the watcher's answer about the first says nothing about the second
		for range 2 {
			b.rt.Start("a", lifecycletest.Script{})
			_, err := b.life.KillContainer(b.ctx, lifecycle.Container{Name: "app", ID: "a"}, lifecycle.ContainerRequest{})
			require.NoError(b, err)
			b.requireExited("a")
		}
	}, watched)
}

// A container without an ID that a complete request lacks is in no result of it.
func TestACompleteRequestLeavesOutWhatItLacks(t *testing.T) {
	inBubble(t, 60, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 5 * time.Second})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{Containers: []lifecycle.Container{named("app"), {Name: "one"}}})
		require.Len(b, termination.Result().Containers, 2)
		b.Terminate(b.Context(), b.pod, lifecycle.Request{Containers: []lifecycle.Container{named("app")}, Complete: true})
		result, err := termination.Wait(b.Context())
		require.NoError(b, err)
		require.Len(b, result.Containers, 1)
	})
}

// The hook of an earlier container of the name is no result of a later termination.
func TestTheHookOfAnEarlierTermination(t *testing.T) {
	inLife(t, func(b *lifeBed) {
		b.spec.Spec.InitContainers = nil
		b.runs("app", "a", lifecycletest.Script{})
		_, err := b.kill(lifecycle.Request{})
		require.NoError(b, err)
		<-time.After(5 * time.Minute)
		b.rt.Start("b", lifecycletest.Script{})
		result, err := b.life.Kill(b.ctx, lifecycle.Request{Containers: []lifecycle.Container{{Name: "app", ID: "b", PreStopDone: true}}, Complete: true})
		require.NoError(b, err)
		require.Equal(b, lifecycle.HookSkipped, result.Containers[0].Hook.Outcome)
	})
}
