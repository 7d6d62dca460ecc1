package agent

import (
	"fmt"
	"net/http"
	"time"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/api"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

// queries answers the read-only requests.
type queries struct {
	pods       *pods
	terminator *lifecycle.Terminator
	manager    *shutdown.Manager
}

func (a *Agent) queries() queries { return queries{a.pods, a.terminator, a.manager} }

// newMux returns the handlers of the requests that both servers answer.
func (q queries) newMux() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /plan", func(w http.ResponseWriter, _ *http.Request) { writeAnswer(w, api.PlanOf(q.manager.Plan())) })
	mux.HandleFunc("GET /pods", func(w http.ResponseWriter, _ *http.Request) { writeAnswer(w, q.podList()) })
	mux.HandleFunc("GET /report", func(w http.ResponseWriter, _ *http.Request) {
		if report, ok := q.report(); ok {
			writeAnswer(w, report)
			return
		}
		writeError(w, http.StatusNotFound, "there was no shutdown yet")
	})
	return mux
}

// healthz answers ok as long as the agent works, also during a shutdown: an agent that
// drains must not be restarted.
func (q queries) healthz(w http.ResponseWriter, _ *http.Request) {
	text := "ok"
	if err := q.manager.ShutdownStatus(); err != nil {
		text += ": " + err.Error()
	}
	_, _ = fmt.Fprintln(w, text) // a client that has disconnected needs no answer
}

// podList returns the current states of all pods.
func (q queries) podList() api.PodList {
	list := api.PodList{
		Meta:         api.Meta{APIVersion: api.Version, Kind: "PodList"},
		ShuttingDown: q.manager.ShutdownStatus() != nil,
		Items:        []api.Pod{},
	}
	now := time.Now()
	for _, p := range q.pods.list() {
		list.Items = append(list.Items, q.pod(p, now))
	}
	return list
}

// pod returns the current state of a pod.
func (q queries) pod(p *pod, now time.Time) api.Pod {
	termination, _ := q.terminator.Pod(p.spec).Termination()
	shown := p.view(now, termination)
	answer := api.Pod{
		Namespace: p.spec.Namespace, Name: p.spec.Name, UID: string(p.spec.UID),
		Priority: shown.Priority, Bucket: shown.Bucket, State: string(shown.State),
		Doing: shown.Doing(q.manager.ShutdownStatus() != nil), Problem: shown.Problem,
		Granted: shown.Granted, Deadline: shown.Deadline,
	}
	for _, c := range p.startedContainers() {
		answer.Restarts += p.restartStateOf(c.Name).count
	}
	for _, c := range shown.Containers {
		answer.Containers = append(answer.Containers, api.Container{Name: c.Name, Phase: string(c.Phase), Outcome: string(c.Outcome), Hook: string(c.Hook.Outcome)})
	}
	return answer
}

// report returns the report of the shutdown that is under way, or of the last one. It
// returns false if there was none.
func (q queries) report() (api.Report, bool) {
	last, ok := q.manager.LastReport()
	if q.manager.ShutdownStatus() == nil || q.pods.shutdownStopsUnderWay() == 0 {
		return api.ReportOf(last), ok
	}
	report := api.Report{Meta: api.Meta{APIVersion: api.Version, Kind: "Report"}, UnderWay: true, Started: q.pods.shutdownBegan(time.Now()), Pods: []api.PodReport{}}
	for _, p := range q.pods.list() {
		if pod, ok := q.podReport(p); ok {
			report.Pods = append(report.Pods, pod)
		}
	}
	return report, true
}

// podReport returns the progress of a pod that a shutdown is stopping or has stopped. It
// returns false for any other pod.
func (q queries) podReport(p *pod) (api.PodReport, bool) {
	termination, _ := q.terminator.Pod(p.spec).Termination()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopBegan.IsZero() || p.outsideShutdown {
		return api.PodReport{}, false
	}
	report := api.PodReport{
		Namespace: p.spec.Namespace, Name: p.spec.Name, UID: string(p.spec.UID), Priority: p.priority, Bucket: p.bucket,
		GrantedSeconds: p.grantedSeconds, Started: p.stopBegan, Ended: p.stopEnded,
	}
	if !p.stopEnded.IsZero() && termination != nil {
		report.Outcome = string(termination.Result().Outcome())
	}
	if p.problem != nil {
		report.Error = p.problem.Error()
	}
	return report, true
}
