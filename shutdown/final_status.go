package shutdown

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

// podEnded counts a pod that has ended, and has its final status sent. One with PolicyLeaveAsIs
// gets none.
func (m *Manager) podEnded(k *kills.Kill, policy PodPolicy) {
	m.unended.remove(k)
	m.countKill(k, nil)
	if !m.flushes() {
		return
	}
	of := policy.of(k.Pod())
	if of == PolicyLeaveAsIs {
		k.Acknowledge()
		return
	}
	m.outbox.Owe(k.Pod(), func() *v1.Pod { return withFinalStatus(k, of) }, k.Acknowledge)
}

// podGivenUp counts a pod that is not known to have ended, unless another drain still waits for it.
func (m *Manager) podGivenUp(k *kills.Kill, err error) {
	if !k.UnderWay() {
		m.unended.remove(k)
		m.countKill(k, err)
	}
}

// countKill counts a pod once: with the outcome that the killer named, or else Failed or Ended.
func (m *Manager) countKill(k *kills.Kill, err error) {
	if !k.Count() {
		return
	}
	outcome := k.State().Result.Outcome
	switch {
	case err != nil:
		outcome = "Failed"
	case outcome == "":
		outcome = "Ended"
	}
	m.opts.Metrics.PodKilled(outcome)
}

// flushes reports whether final statuses are sent to the API server.
func (m *Manager) flushes() bool { return m.recorder.flushes }

// marks reports whether pods are marked not ready before they are killed.
func (m *Manager) marks() bool {
	_, marks := m.opts.Reporter.(ReadinessMarker)
	return marks
}

// withFinalStatus returns a copy of the pod with its final status. It has a deletion timestamp if
// the pod is to be deleted.
func withFinalStatus(k *kills.Kill, policy PodPolicy) *v1.Pod {
	pod, state := *k.Pod(), k.State()
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
		Spec:   v1.PodSpec{RestartPolicy: pod.Spec.RestartPolicy, TerminationGracePeriodSeconds: pod.Spec.TerminationGracePeriodSeconds},
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
