package shutdown

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
	"github.com/kubegrace/kubegrace/shutdown/internal/statuses"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// restoreTime bounds the attempts to say that pods which a cancelled shutdown has spared
// are ready again.
const restoreTime = 30 * time.Second

// podStatuses is what one drain tells the API server of its pods. The queue is shared by
// all drains of a manager, so that a drain that overtakes another one waits for the
// statuses of both.
type podStatuses struct {
	reporter Reporter // nil: nothing is told
	finals   *finals
	queue    *statuses.Queue
	fail     func(error)
	answers  uint64 // of the API server, before the node's state was to be published
	policy   PodPolicy
	// acknowledged has it stored that a final status is, and calls stored then.
	acknowledged func(stored func())
	// killed tells whether this drain or an earlier one has signalled a pod.
	killed func(*v1.Pod) bool
	// calledOff has something done unless another shutdown is under way by now, and none
	// begins meanwhile: pods that it kills are not put back into service.
	calledOff func(func())

	mu     sync.Mutex                     // guards all below
	marked map[*kills.Kill]*statuses.Mark // of the bucket that is killed now
	failed int                            // marks of it that nobody has acknowledged
	cause  error                          // why, of the first
}

// setPolicy is called once, before the first pod is killed.
func (s *podStatuses) setPolicy(policy PodPolicy) { s.policy = policy }

// marks tells whether pods are marked not ready in a window that begins now.
func (s *podStatuses) marks(window plan.Window, now time.Time) bool {
	_, ok := s.reporter.(ReadinessMarker)
	return ok && now.Before(window.Ready)
}

// mark takes a pod out of its services before it is stopped, and waits until the API
// server knows, until a time or the halt at most. It does not wait where nothing has been
// acknowledged since the node's state was to be published. A pod that was deleted is out
// of its services already.
func (s *podStatuses) mark(k *kills.Kill, h halt, until time.Time) {
	marker := s.reporter.(ReadinessMarker) //nolint:forcetypeassert // marks has looked
	if k.Pod.DeletionTimestamp != nil {
		return
	}
	waits := s.queue.Answers() > s.answers
	mark := s.queue.Mark(marker.MarkNotReady, k.Pod, until)
	s.mu.Lock()
	s.marked[k] = mark
	s.mu.Unlock()
	if !waits {
		return
	}
	if _, err := mark.Await(h.ctx, until); err != nil && !h.is() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.failed++; s.cause == nil {
			s.cause = err
		}
	}
}

// settleMarks is called when the pods of a bucket are signalled. It reports the marks
// that have failed; of a cancelled shutdown it takes back those of pods that were spared,
// also what an earlier shutdown had said of pods that this one has not come to.
func (s *podStatuses) settleMarks(pods []*kills.Kill, h halt) {
	s.mu.Lock()
	marked, failed, cause := s.marked, s.failed, s.cause
	s.marked, s.failed, s.cause = map[*kills.Kill]*statuses.Mark{}, 0, nil
	s.mu.Unlock()
	if failed > 0 {
		s.fail(fmt.Errorf("failed to mark %d pods not ready: %w", failed, cause))
	}
	if restorer, ok := s.reporter.(ReadinessRestorer); ok && h.cancelled() {
		s.calledOff(func() {
			s.restore(restorer, pods, marked)
			s.queue.RestoreDropped(func(pod *v1.Pod) bool { return !s.killed(pod) }, time.Now().Add(restoreTime))
		})
	}
}

// restore takes back the marks of pods that were spared.
func (s *podStatuses) restore(restorer ReadinessRestorer, pods []*kills.Kill, marked map[*kills.Kill]*statuses.Mark) {
	s.queue.DropMarks()
	expires := time.Now().Add(restoreTime)
	for _, k := range pods {
		if mark := marked[k]; mark != nil && !k.Signalled() && mark.Sent() {
			s.queue.Restore(restorer.RestoreReadiness, k.Pod, expires, func(err error) {
				s.fail(fmt.Errorf("failed to say that a pod is ready again, which a cancelled shutdown has spared: %w", err))
			})
		}
	}
}

// ended hands in the final status of a pod that has ended. One that may still run, because
// its killer has failed or does not come to an end, has none: what is not known to have
// ended is not said to have. One that is left as it is has none either.
func (s *podStatuses) ended(k *kills.Kill) {
	flusher, ok := s.reporter.(StatusFlusher)
	if !ok || !k.HasEnded() {
		return
	}
	policy := s.policy.of(k.Pod)
	if policy == PolicyLeaveAsIs {
		k.Acknowledge()
		return
	}
	s.finals.add(k.Pod, func() { s.queue.Withdraw(k.Pod) })
	s.queue.Status(func(ctx context.Context, _ *v1.Pod) error {
		return flusher.FlushPod(ctx, final(k, policy).DeepCopy()) // the reporter may write to it
	}, k.Pod, func() {
		k.Acknowledge()
		s.acknowledged(func() { s.finals.remove(k.Pod) })
	})
}

// unacknowledged are the final statuses of pods that were signalled and that the API server
// has not acknowledged, for the next agent. Those of pods that are not known to have ended
// are true after the next boot.
func (s *podStatuses) unacknowledged(all []*kills.Kill) []finalStatus {
	if _, ok := s.reporter.(StatusFlusher); !ok {
		return nil
	}
	var statuses []finalStatus
	for _, k := range all {
		policy := s.policy.of(k.Pod)
		if policy == PolicyLeaveAsIs || !k.Signalled() || k.State().Acknowledged {
			continue
		}
		if len(statuses) == mostUnacknowledged {
			break
		}
		statuses = append(statuses, finalStatus{Pod: essentials(final(k, policy)), Ended: k.HasEnded()})
	}
	return statuses
}

// essentials is what of a pod is stored with its final status: who it is, and which
// containers it has.
func essentials(pod *v1.Pod) *v1.Pod {
	stored := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:                  pod.Namespace,
			Name:                       pod.Name,
			UID:                        pod.UID,
			Generation:                 pod.Generation,
			Annotations:                pod.Annotations,
			DeletionTimestamp:          pod.DeletionTimestamp,
			DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds,
		},
		Spec:   v1.PodSpec{RestartPolicy: pod.Spec.RestartPolicy},
		Status: pod.Status,
	}
	for _, c := range pod.Spec.InitContainers {
		stored.Spec.InitContainers = append(stored.Spec.InitContainers, v1.Container{Name: c.Name, RestartPolicy: c.RestartPolicy})
	}
	for _, c := range pod.Spec.Containers {
		stored.Spec.Containers = append(stored.Spec.Containers, v1.Container{Name: c.Name})
	}
	for _, c := range pod.Spec.EphemeralContainers {
		stored.Spec.EphemeralContainers = append(stored.Spec.EphemeralContainers, v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: c.Name}})
	}
	return stored
}

// final is a copy of the pod with its final status, and with a deletion timestamp
// if it is to be removed.
func final(k *kills.Kill, policy PodPolicy) *v1.Pod {
	pod, state := *k.Pod, k.State()
	if state.Result.Status != nil {
		pod.Status = *state.Result.Status
	}
	policy.setStatus()(&pod.Status)
	if policy == PolicyDelete && pod.DeletionTimestamp == nil {
		since := metav1.NewTime(state.Ended)
		if since.IsZero() { // it may still run, and is removed after the next boot
			since = metav1.NewTime(state.Started)
		}
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &since, &state.Seconds
	}
	return &pod
}

// awaitBucket waits for the final statuses of those pods of a bucket that have ended, as
// long as the server answers and the bucket lasts. Pods that use all of their grace end a
// moment after it, and belong to their bucket all the same.
func (s *podStatuses) awaitBucket(ctx context.Context, batch *kills.Batch, pods []*kills.Kill, window plan.Window, reserve time.Duration) {
	if _, ok := s.reporter.(StatusFlusher); !ok {
		return
	}
	_, _ = batch.Done.Await(ctx, earlier(window.End, time.Now().Add(reserve/2))) // who has not ended is not waited for
	s.queue.Await(ctx, anyUnacknowledged(pods), window.End, reserve)
}

// anyUnacknowledged gives a function that tells whether the final status of a pod that has
// ended is not acknowledged. It is asked after each acknowledgement, so it looks again only
// at pods that had not ended.
func anyUnacknowledged(pods []*kills.Kill) func() bool {
	var running []*kills.Kill
	return func() bool {
		for ; len(pods) > 0; pods = pods[1:] {
			switch {
			case !pods[0].HasEnded():
				running = append(running, pods[0])
			case !pods[0].State().Acknowledged:
				return true
			}
		}
		return slices.ContainsFunc(running, func(k *kills.Kill) bool { return k.HasEnded() && !k.State().Acknowledged })
	}
}

// awaitAll waits for all final statuses, also those of earlier drains, as long as the
// server answers and the host waits.
func (s *podStatuses) awaitAll(ctx context.Context, table plan.Timetable) {
	var reserve time.Duration
	for _, r := range table.Budget().Reserves {
		reserve = max(reserve, r.Statuses)
	}
	if s.queue.Await(ctx, func() bool { return s.queue.Pending() > 0 }, table.Release(), reserve) {
		return
	}
	err := s.queue.Failure()
	if err == nil {
		err = errTimeSpent
	}
	s.fail(fmt.Errorf("failed to flush the final statuses of %d pods: %w", s.queue.Pending(), err))
}
