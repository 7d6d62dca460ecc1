package judge

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// moment returns the moment that many seconds after the beginning of a record. Its Order is the number of milliseconds, so
// moments of one record must differ by 1 ms or more.
func moment(seconds float64) Moment {
	return Moment{At: second(seconds), Order: 1 + int(seconds*1000)}
}

// span returns a call between two times.
func span(called, returned float64) Span {
	return Span{Called: moment(called), Returned: moment(returned)}
}

// container returns a run that began with the record. Its ID is its name.
func container(name string) lifecycle.Container {
	return lifecycle.Container{Name: name, ID: name, Began: second(0)}
}

// podRecord is a record of a termination, with methods that change it.
type podRecord struct{ *Record }

// soundPod returns the record of a termination that breaks no rule: the hook of the container "app" runs, "app" is
// stopped, and then the sidecar "proxy".
func soundPod() podRecord {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod"}}
	pod.Spec.Containers = []v1.Container{{Name: "app"}}
	pod.Spec.InitContainers = []v1.Container{{Name: "proxy", RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways)}}
	r := &Record{began: second(0)}
	r.options.StopTimeoutSlack, r.options.GiveUpAfter = time.Second, 10*time.Second
	r.runs = []*Run{
		{Container: container("app"), Pod: "pod", Start: moment(0.1), Exit: moment(4), EndedBy: "TERM"},
		{Container: container("proxy"), Pod: "pod", Start: moment(0.2), Exit: moment(6), EndedBy: "TERM"},
	}
	r.terminations = []*Termination{{
		Pod: pod, Key: "pod",
		Requests: []*Request{{Span: span(1, 1.001), Pod: pod, Key: "pod", Deadline: second(31), HasNoList: true}},
		Readings: []Reading{{Called: moment(1.002), Returned: moment(1.003), Deadline: second(31)}, {Called: moment(8.002), Returned: moment(8.003), Deadline: second(31)}},
		Done:     moment(8),
		Result: lifecycle.Result{Containers: []lifecycle.ContainerResult{
			{Name: "app", ID: "app", Began: second(0), Outcome: lifecycle.OutcomeGraceful, Hook: lifecycle.HookResult{Outcome: lifecycle.HookCompleted}},
			{Name: "proxy", ID: "proxy", Began: second(0), Outcome: lifecycle.OutcomeGraceful},
		}},
	}}
	r.lists = []*List{
		{Span: span(1.1, 1.2), Pod: "pod", Running: []lifecycle.Container{container("app"), container("proxy")}},
		{Span: span(4.2, 4.3), Pod: "pod", Running: []lifecycle.Container{container("proxy")}},
		{Span: span(6.2, 6.3), Pod: "pod"},
	}
	r.hooks = []*Hook{{Span: span(1.3, 3), Pod: "pod", Name: "app", ID: "app"}}
	r.stopCalls = []*StopCall{
		{Span: span(3.1, 4.1), ID: "app", Seconds: 28},
		{Span: span(5, 6.1), ID: "proxy", Seconds: 26},
	}
	r.logs = []LogEntry{{Moment: moment(7), Text: "an error of another pod", IsError: true}}
	return podRecord{r}
}

// termination returns the only termination of the record.
func (r podRecord) termination() *Termination { return r.terminations[0] }

// appResult returns the result of "app".
func (r podRecord) appResult() *lifecycle.ContainerResult {
	return &r.termination().Result.Containers[0]
}

// addKill adds a KillContainer call for a container, with the outcome that it reports. The times are in seconds since the
// beginning of the record.
func (r podRecord) addKill(name string, called, returned, deadline float64, outcome lifecycle.Outcome) {
	r.killContainerCalls = append(r.killContainerCalls, &Request{
		Span: span(called, returned), Pod: r.termination().Pod, Key: "pod", Deadline: second(deadline),
		Containers: []lifecycle.Container{container(name)}, Result: lifecycle.ContainerResult{Name: name, ID: name, Outcome: outcome},
	})
}

// addClose adds a call of Close at a time.
func (r podRecord) addClose(at float64) {
	s := span(at, at+0.001)
	r.closeCalls = append(r.closeCalls, &s)
}

// giveUpProxy changes the record: "proxy" does not end, and the termination gives it up at a time and ends.
func (r podRecord) giveUpProxy(at float64) {
	r.lists[2].Running = []lifecycle.Container{container("proxy")}
	r.termination().Done = moment(at)
	r.termination().Result.Containers[1].Outcome = lifecycle.OutcomeRuntimeStuck
	r.termination().Result.Containers[1].Err = errors.New("stuck")
}

// The record of soundPod breaks no rule. TestPodRulesRefuse changes this record.
func TestSoundPodBreaksNoRule(t *testing.T) {
	r := soundPod()
	require.Empty(t, Terminations(r.Record), r.Story())
}

// podRecordsThatBreakARule returns changes of soundPod's record, by the name of the rule that each one breaks, and by what is
// wrong. In the record of soundPod, the termination begins at 1 s, has its deadline at 31 s, and ends at 8 s. app has a hook
// from 1.3 s to 3 s and is stopped at 3.1 s; proxy is stopped at 5 s. A container may be given up from 41 s on, which is
// GiveUpAfter (10 s) past the deadline.
func podRecordsThatBreakARule() map[string]map[string]func(r podRecord) {
	return map[string]map[string]func(r podRecord){
		"a deadline only moves earlier": {
			"later": func(r podRecord) { r.termination().Readings[0].Deadline = second(30) },
		},
		"the deadline is the earliest that was requested": {
			"later": func(r podRecord) {
				r.termination().Shortens = []*Request{{Span: span(2, 2.001), Deadline: second(20)}}
			},
			"earlier": func(r podRecord) { r.termination().Readings[1].Deadline = second(30) },
		},
		"no container is killed before its deadline": {
			"nobody has requested its end": func(r podRecord) { r.stopCalls[0].Span = span(0.5, 4.1) },
			"too few seconds":              func(r podRecord) { r.stopCalls[0].Seconds = 27 }, // 3.1 s + 27 s is before 31 s
		},
		"no stop outlasts the deadline and the minimum": {
			"too many seconds": func(r podRecord) { r.stopCalls[0].Seconds = 31 }, // 3.1 s + 31 s is after 31 s + 2 s
		},
		"every run is stopped by its deadline": {
			"it is not stopped": func(r podRecord) {
				r.giveUpProxy(45)
				r.stopCalls = r.stopCalls[:1]
			},
		},
		"failed stops are repeated": {
			"only one call": func(r podRecord) {
				r.giveUpProxy(45)
				r.stopCalls[1].Err = errors.New("refused")
			},
		},
		"nothing hangs": {
			"a termination": func(r podRecord) { r.giveUpProxy(70) }, // 48 s: 41 s, and 7 s for a pause, calls that hang and a cancellation
			"KillContainer": func(r podRecord) { r.addKill("proxy", 2, 70, 10, lifecycle.OutcomeGraceful) },
			"after Close":   func(r podRecord) { r.addClose(2) },
		},
		"nothing is given up early": {
			"stuck":        func(r podRecord) { r.giveUpProxy(40) },
			"left running": func(r podRecord) { r.appResult().Outcome = lifecycle.OutcomeLeftRunning },
		},
		"a hook runs once in each run": {
			"twice": func(r podRecord) {
				r.hooks = append(r.hooks, &Hook{Span: span(3.2, 3.3), Pod: "pod", Name: "app", ID: "app"})
			},
		},
		"the hook of a previous agent is not repeated": {
			"the list says that it has run": func(r podRecord) { r.lists[0].Running[0].PreStopDone = true },
		},
		"hooks end by the deadline, and at Close": {
			"it continues after the deadline": func(r podRecord) {
				r.giveUpProxy(45)
				r.hooks[0].Returned = moment(32)
			},
			"it begins after the deadline": func(r podRecord) {
				r.giveUpProxy(45)
				r.hooks[0].Span = span(31.1, 31.2)
			},
			"it continues after Close": func(r podRecord) { r.addClose(2) },
		},
		"hooks are reported as they ended": {
			"it has failed":           func(r podRecord) { r.hooks[0].Err = errors.New("failed") },
			"it has not failed":       func(r podRecord) { r.appResult().Hook.Outcome = lifecycle.HookFailed },
			"it was not cut":          func(r podRecord) { r.appResult().Hook.Outcome = lifecycle.HookCut },
			"it is not abandoned":     func(r podRecord) { r.appResult().Hook.Outcome = lifecycle.HookAbandoned },
			"it has not yet returned": func(r podRecord) { r.hooks[0].Returned = moment(9) },
		},
		"sidecars stop last": {
			"a container that needs it is listed": func(r podRecord) { r.stopCalls[1].Span = span(3.2, 6.1) },
			"a container that needs it is starting": func(r podRecord) {
				r.starts = []*Start{{Span: span(0.3, 7), Pod: "pod", Name: "app", Begun: moment(0.4), Ended: moment(7)}}
			},
			"a container that needs it was named": func(r podRecord) {
				request := r.termination().Requests[0]
				request.HasNoList, request.Containers = false, r.lists[0].Running
				r.lists = nil
				r.stopCalls[1].Span = span(3.2, 6.1)
			},
		},
		"no running container is reported as ended": {
			"a list has it": func(r podRecord) {
				r.lists[1].Running = r.lists[0].Running
				r.lists[2].Running = r.lists[0].Running[:1]
			},
			"the list was requested before the stop": func(r podRecord) { r.lists = append(r.lists[:1:1], &List{Span: span(3.05, 6.3), Pod: "pod"}) },
			"KillContainer says so": func(r podRecord) {
				r.giveUpProxy(41)
				r.addKill("proxy", 2, 7, 31, lifecycle.OutcomeGraceful)
			},
			"nothing was listed": func(r podRecord) {
				r.lists = nil
				r.termination().Result.Containers = []lifecycle.ContainerResult{{Name: "app", Outcome: lifecycle.OutcomeNotFound}}
			},
		},
		"no running pod is reported as ended": {
			"a list has a container": func(r podRecord) { r.lists[2].Running = []lifecycle.Container{container("other")} },
			"no list since the last start": func(r podRecord) {
				r.starts = []*Start{{Span: span(0.3, 7), Pod: "pod", Name: "app", Begun: moment(0.4), Ended: moment(6.9)}}
			},
			"a container is being started": func(r podRecord) {
				r.starts = []*Start{{Span: span(0.3, 9), Pod: "pod", Name: "app", Begun: moment(0.4), Ended: moment(8.9)}}
			},
		},
		"a killed container is not Graceful": {
			"it is": func(r podRecord) { r.runs[0].EndedBy = "KILL" },
		},
		"every listed run has a result": {
			"it has none": func(r podRecord) { r.termination().Result.Containers = r.termination().Result.Containers[1:] },
		},
		"failures are in the result": {
			"no error": func(r podRecord) { r.appResult().Outcome = lifecycle.OutcomeForced },
		},
		"failed stops are logged": {
			"not before the next one": func(r podRecord) {
				r.stopCalls[0].Err = errors.New("refused")
				r.stopCalls = append(r.stopCalls, &StopCall{Span: span(4.5, 4.6), ID: "app", Seconds: 26})
			},
		},
		"failed lists are logged": {
			"it is not": func(r podRecord) {
				r.logs[0].IsError = false
				r.lists[1].Err = errors.New("refused")
			},
			"it was cancelled, but not by Close": func(r podRecord) {
				r.logs[0].IsError = false
				r.lists[1].Err = context.Canceled
			},
		},
		"nothing starts after a termination": {
			"a container": func(r podRecord) {
				r.starts = []*Start{{Span: span(2, 2.2), Pod: "pod", Name: "app", Begun: moment(2.1), Ended: moment(2.15)}}
			},
			"a sidecar after the end": func(r podRecord) {
				r.starts = []*Start{{Span: span(9, 9.2), Pod: "pod", Name: "proxy", Begun: moment(9.1), Ended: moment(9.15)}}
			},
		},
		"late starts are stopped": {
			"nothing is listed": func(r podRecord) {
				r.starts = []*Start{{Span: span(0.3, 9.5), Pod: "pod", Name: "app", Begun: moment(0.4), Ended: moment(9)}}
			},
			"what is listed is not stopped": func(r podRecord) {
				r.starts = []*Start{{Span: span(0.3, 9.5), Pod: "pod", Name: "app", Begun: moment(0.4), Ended: moment(9)}}
				r.lists = append(r.lists, &List{Span: span(9.1, 9.2), Pod: "pod", Running: []lifecycle.Container{{Name: "app", ID: "late", Began: second(9)}}})
			},
		},
	}
}

// Each rule refuses a record that differs from that of soundPod only in what the rule forbids.
func TestPodRulesRefuse(t *testing.T) {
	changes := podRecordsThatBreakARule()
	require.Len(t, changes, len(podRules()))
	for _, rule := range podRules() {
		require.NotEmpty(t, changes[rule.name], "no record breaks the rule: %s", rule.name)
		for what, change := range changes[rule.name] {
			t.Run(rule.name+": "+what, func(t *testing.T) {
				r := soundPod()
				change(r)
				var found []string
				for _, p := range r.podHistories() {
					rule.check(p)
					found = append(found, p.violations...)
				}
				require.NotEmpty(t, found, r.Story())
			})
		}
	}
}

// A list arrives after the end of its context. If Close has ended the context, the terminator uses the list. So the list is
// recorded without an error. If a timeout has ended the context, here with the cause "too late", the terminator ignores the
// list. So the list is recorded with the cause as its error.
func TestAListAfterTheEndOfItsContext(t *testing.T) {
	for cause, recorded := range map[error]error{lifecycle.CauseTerminatorClosed: nil, errors.New("too late"): errors.New("too late")} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		record := NewRecord()
		_, err := record.recordList(ctx, &v1.Pod{}, func(context.Context, *v1.Pod) ([]lifecycle.Container, error) { return nil, nil })
		require.NoError(t, err)
		require.Equal(t, recorded, record.lists[0].Err)
	}
}

// A list and a stop panic. The record does not say that they have succeeded: rules would take the list as empty, and the container
// as stopped.
func TestACallThatPanicsHasNotSucceeded(t *testing.T) {
	r := NewRecord()
	require.Panics(t, func() {
		_, _ = r.recordList(t.Context(), &v1.Pod{}, func(context.Context, *v1.Pod) ([]lifecycle.Container, error) { panic("boom") })
	})
	require.ErrorIs(t, r.lists[0].Err, errDidNotReturn)
	require.Panics(t, func() { _ = r.recordStop(&StopCall{ID: "app"}, func() error { panic("boom") }) })
	require.False(t, r.stopCalls[0].succeeded())
}
