package shutdown

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

// podReports returns the reports of a previous agent, followed by those of the pods that this one
// has signalled. A pod that both have signalled appears once, with the report of this agent.
// flushes says that final statuses are sent to the API server. complete says that none of these
// reports will change.
func podReports(before []PodReport, known []*kills.Kill, flushes bool) (pods []PodReport, complete bool) {
	again := map[types.UID]bool{}
	pods, complete = make([]PodReport, 0, len(known)), true
	for _, k := range known {
		state := k.State()
		if state.Ended.IsZero() || flushes && !state.Acknowledged {
			complete = false
		}
		if state.Signalled {
			pods = append(pods, podReport(k, state, flushes))
			if len(before) > 0 {
				again[kills.Key(k.Pod)] = true
			}
		}
	}
	previous := slices.DeleteFunc(slices.Clone(before), func(pod PodReport) bool {
		return again[kills.Key(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}})]
	})
	if len(previous) == 0 {
		return slices.Clip(pods), complete // a copy of very many reports would slow the drain down
	}
	return append(previous, pods...), complete
}

// podReport returns the report of one pod as it is now.
func podReport(k *kills.Kill, state kills.State, flushes bool) PodReport {
	r := PodReport{
		Namespace:      k.Pod.Namespace,
		Name:           k.Pod.Name,
		UID:            k.Pod.UID,
		Priority:       k.Priority,
		Bucket:         k.Bucket,
		GrantedSeconds: state.Seconds,
		Started:        state.Started,
		Outcome:        state.Result.Outcome,
		Unflushed:      flushes && !state.Acknowledged,
	}
	if state.Err != nil {
		r.Error = fmt.Sprint(state.Err) // fmt recovers from an Error method that panics
		return r
	}
	r.Ended = state.Ended // stays zero after an error: the pod may still run
	return r
}
