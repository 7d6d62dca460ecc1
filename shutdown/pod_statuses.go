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

// restoreTime bounds the attempts to mark pods ready again after a cancelled shutdown.
const restoreTime = 30 * time.Second

// podStatuses sends the readiness marks and the final statuses of one drain to the API server.
// All drains of a manager share the queue, so that a drain also waits for the statuses of the
// drain that it has overtaken.
type podStatuses struct {
	reporter           Reporter // nil: nothing is sent
	unacknowledgedPods *unacknowledgedPods
	queue              *statuses.Queue
	fail               func(error)
	answersBefore      uint64 // of the API server before the node state was published
	policy             PodPolicy
	// storeAcknowledged stores that a final status is acknowledged, and calls stored after that.
	storeAcknowledged func(stored func())
	// hasSignalled reports whether this drain or an earlier one has signalled a pod.
	hasSignalled func(*v1.Pod) bool
	// unlessShutdown runs a function unless another shutdown is under way, and lets none begin
	// meanwhile: the pods of that shutdown must not be marked ready again.
	unlessShutdown func(func())

	mu          sync.Mutex                     // guards all below
	marked      map[*kills.Kill]*statuses.Mark // the pods of the current bucket
	marksFailed int                            // marks of this bucket that were not acknowledged in time
	markErr     error                          // the error of the first of them
}

// setPolicy is called once, before the first kill.
func (s *podStatuses) setPolicy(policy PodPolicy) { s.policy = policy }

// marksReadiness reports whether pods are marked not ready in a window that begins now.
func (s *podStatuses) marksReadiness(window plan.Window, now time.Time) bool {
	_, ok := s.reporter.(ReadinessMarker)
	return ok && now.Before(window.Ready)
}

// markNotReady takes a pod out of its services before the pod is killed. It waits until the API
// server has the mark, at most until a time. It does not wait if the API server has acknowledged
// nothing since the publication of the node state began. A pod with a deletion timestamp is out
// of its services already.
func (s *podStatuses) markNotReady(k *kills.Kill, h halt, until time.Time) {
	marker := s.reporter.(ReadinessMarker) //nolint:forcetypeassert // marksReadiness has checked it
	if k.Pod.DeletionTimestamp != nil {
		return
	}
	waits := s.queue.Answers() > s.answersBefore
	mark := s.queue.Mark(marker.MarkNotReady, k.Pod, until)
	s.mu.Lock()
	s.marked[k] = mark
	s.mu.Unlock()
	if !waits {
		return
	}
	if _, err := mark.Await(h.ctx, until); err != nil && !h.halted() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.marksFailed++; s.markErr == nil {
			s.markErr = err
		}
	}
}

// finishMarks is called when all pods of a bucket are signalled. It reports the marks that have
// failed. After a cancellation it reverts the marks of pods that were not killed, and the reverts
// that this shutdown had dropped when it began.
func (s *podStatuses) finishMarks(pods []*kills.Kill, h halt) {
	s.mu.Lock()
	marked, failed, cause := s.marked, s.marksFailed, s.markErr
	s.marked, s.marksFailed, s.markErr = map[*kills.Kill]*statuses.Mark{}, 0, nil
	s.mu.Unlock()
	if failed > 0 {
		s.fail(fmt.Errorf("failed to mark %d pods not ready: %w", failed, cause))
	}
	if restorer, ok := s.reporter.(ReadinessRestorer); ok && h.cancelled() {
		s.unlessShutdown(func() {
			s.restore(restorer, pods, marked)
			s.queue.RestoreDropped(func(pod *v1.Pod) bool { return !s.hasSignalled(pod) }, time.Now().Add(restoreTime))
		})
	}
}

// restore marks pods ready again that were marked and not killed.
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

// queueFinal sends the final status of a pod that has ended. A pod that may still run, because
// its killer failed or hangs, gets none; neither does one with PolicyLeaveAsIs.
func (s *podStatuses) queueFinal(k *kills.Kill) {
	flusher, ok := s.reporter.(StatusFlusher)
	if !ok || !k.HasEnded() {
		return
	}
	policy := s.policy.of(k.Pod)
	if policy == PolicyLeaveAsIs {
		k.Acknowledge()
		return
	}
	s.unacknowledgedPods.add(k.Pod, func() { s.queue.Withdraw(k.Pod) })
	s.queue.Status(func(ctx context.Context, _ *v1.Pod) error {
		return flusher.FlushPod(ctx, withFinalStatus(k, policy).DeepCopy()) // a copy, because the reporter may change it
	}, k.Pod, func() {
		k.Acknowledge()
		s.storeAcknowledged(func() { s.unacknowledgedPods.remove(k.Pod) })
	})
}

// unacknowledged returns the final statuses for the state file: those of signalled pods that the
// API server has not acknowledged. A pod that is not known to have ended is included, because it
// has ended when the next boot reads the file.
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
		statuses = append(statuses, finalStatus{Pod: podToStore(withFinalStatus(k, policy)), Ended: k.HasEnded()})
	}
	return statuses
}

// podToStore returns the part of a pod that is stored with its final status: its identity and the
// names of its containers.
func podToStore(pod *v1.Pod) *v1.Pod {
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

// withFinalStatus returns a copy of the pod with its final status. It has a deletion timestamp if
// the pod is to be deleted.
func withFinalStatus(k *kills.Kill, policy PodPolicy) *v1.Pod {
	pod, state := *k.Pod, k.State()
	if state.Result.Status != nil {
		pod.Status = *state.Result.Status
	}
	policy.setStatus()(&pod.Status)
	if policy == PolicyDelete && pod.DeletionTimestamp == nil {
		since := metav1.NewTime(state.Ended)
		if since.IsZero() { // it may still run; it is deleted after the next boot
			since = metav1.NewTime(state.Started)
		}
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &since, &state.Seconds
	}
	return &pod
}

// awaitBucket waits for the final statuses of the pods of a bucket that have ended, as long as
// the API server answers and the bucket lasts. Before that it waits for half of the reserve for
// pods that are just about to end, as those that use all of their grace period do.
func (s *podStatuses) awaitBucket(ctx context.Context, batch *kills.Batch, pods []*kills.Kill, window plan.Window, reserve time.Duration) {
	if _, ok := s.reporter.(StatusFlusher); !ok {
		return
	}
	_, _ = batch.Done.Await(ctx, minTime(window.End, time.Now().Add(reserve/2))) // the others are not waited for
	s.queue.Await(ctx, anyUnacknowledged(pods), window.End, reserve)
}

// anyUnacknowledged returns a function that reports whether a pod has ended whose final status is
// not acknowledged. The function is called after each acknowledgement, so it does not look again
// at acknowledged pods.
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

// awaitAll waits for all final statuses, those of earlier drains included, as long as the API
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
