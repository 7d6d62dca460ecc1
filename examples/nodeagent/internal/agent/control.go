package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/api"
	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/shutdown"
)

// drainOrigin is the origin of a shutdown that nodeagent drain has triggered.
const drainOrigin = "nodeagent drain"

// handleDrain stops all pods, waits for the end and answers with the report. The drain
// goes on if the client disconnects.
func (a *Agent) handleDrain(w http.ResponseWriter, r *http.Request) {
	ended := make(chan api.Report, 1)
	if !a.ask(r.Context(), func(l *loop) error { return l.drainFor(ended) }) {
		refuse(w, http.StatusServiceUnavailable, errLeaving.Error())
		return
	}
	select {
	case report := <-ended:
		answer(w, report)
	case <-a.left:
		select {
		case report := <-ended: // the pods were stopped before the agent left
			answer(w, report)
		default:
			refuse(w, http.StatusServiceUnavailable, "the agent has left before the pods were stopped")
		}
	case <-r.Context().Done():
	}
}

// ask makes the loop call a function. It returns false if the loop has ended.
func (a *Agent) ask(ctx context.Context, do func(*loop) error) bool {
	select {
	case a.requests <- do:
		return true
	case <-a.left:
	case <-ctx.Done():
	}
	return false
}

// drainFor triggers a shutdown, unless one is under way or done, and sends its report
// when it has ended.
func (l *loop) drainFor(ended chan<- api.Report) error {
	report, ok := l.manager.LastReport()
	if l.drained && ok {
		ended <- api.ReportOf(report)
		return nil
	}
	l.drains = append(l.drains, ended)
	return l.trigger(drainOrigin)
}

// handleStop stops one pod, which is not started again, and answers with its state.
func (a *Agent) handleStop(w http.ResponseWriter, r *http.Request) {
	name := r.FormValue("pod")
	p, err := a.pods.named(name)
	if err != nil {
		refuse(w, http.StatusNotFound, err.Error())
		return
	}
	grace := graceOf(p)
	if text := r.FormValue("seconds"); text != "" {
		if grace, err = strconv.ParseInt(text, 10, 32); err != nil || grace < 0 {
			refuse(w, http.StatusBadRequest, fmt.Sprintf("%q is no number of seconds", text))
			return
		}
	}
	// The stop cannot be undone, so it goes on if the client disconnects.
	if err := a.retire(context.WithoutCancel(r.Context()), p, grace); err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	answer(w, a.podOf(p, time.Now()))
}

// graceOf returns a pod's own grace period in seconds.
func graceOf(p *pod) int64 {
	if own := p.spec.Spec.TerminationGracePeriodSeconds; own != nil {
		return *own
	}
	return graceperiod.DefaultSeconds
}

// retire stops a pod outside of a shutdown. A shutdown that begins meanwhile only
// shortens the stop, and retire only shortens a stop by a shutdown.
func (a *Agent) retire(ctx context.Context, p *pod, graceSeconds int64) error {
	if p.isStopped() {
		return nil
	}
	request := shutdown.KillRequest{GracePeriodSeconds: graceSeconds}
	if !p.stopByHand() {
		return a.killer.hasten(ctx, p, request)
	}
	result, err := a.killer.KillPod(ctx, p.spec, request)
	if err != nil || a.opts.APIServer == nil || result.Status == nil {
		return err
	}
	final := p.spec.DeepCopy()
	final.Status = *result.Status
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	if err := a.opts.APIServer.FlushPod(ctx, final); err != nil {
		a.opts.Logger.Error(err, "Failed to tell the API server that a pod was stopped", "pod", p.name())
	}
	return nil
}

// podList returns the current states of all pods.
func (a *Agent) podList() api.PodList {
	list := api.PodList{
		Meta:         api.Meta{APIVersion: api.Version, Kind: "PodList"},
		ShuttingDown: a.manager.ShutdownStatus() != nil,
		Items:        []api.Pod{},
	}
	now := time.Now()
	for _, p := range a.pods.list() {
		list.Items = append(list.Items, a.podOf(p, now))
	}
	return list
}

func (a *Agent) podOf(p *pod, now time.Time) api.Pod {
	termination, _ := a.terminator.Termination(p.spec.UID)
	shown := p.view(now, termination)
	said := api.Pod{
		Namespace: p.spec.Namespace, Name: p.spec.Name, UID: string(p.spec.UID),
		Priority: shown.Priority, Bucket: shown.Bucket, State: string(shown.State),
		Doing: shown.Doing(a.manager.ShutdownStatus() != nil), Problem: shown.Problem,
		Granted: shown.Granted, Deadline: shown.Deadline,
	}
	for _, c := range p.running() {
		said.Restarts += p.restartsOf(c.Name).count
	}
	for _, c := range shown.Containers {
		said.Containers = append(said.Containers, api.Container{Name: c.Name, Phase: string(c.Phase), Outcome: string(c.Outcome), Hook: string(c.Hook.Outcome)})
	}
	return said
}

// report returns the report of the shutdown that is under way, or of the last one.
func (a *Agent) report() (api.Report, bool) {
	last, ok := a.manager.LastReport()
	if a.manager.ShutdownStatus() == nil || a.pods.ending() == 0 {
		return api.ReportOf(last), ok
	}
	now := api.Report{Meta: api.Meta{APIVersion: api.Version, Kind: "Report"}, UnderWay: true, Started: a.pods.firstTold(time.Now()), Pods: []api.PodReport{}}
	for _, p := range a.pods.list() {
		if pod, told := a.reportOf(p); told {
			now.Pods = append(now.Pods, pod)
		}
	}
	return now, true
}

// reportOf returns the progress of a pod that a shutdown is stopping.
func (a *Agent) reportOf(p *pod) (api.PodReport, bool) {
	termination, _ := a.terminator.Termination(p.spec.UID)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told.IsZero() || p.byHand {
		return api.PodReport{}, false
	}
	said := api.PodReport{
		Namespace: p.spec.Namespace, Name: p.spec.Name, UID: string(p.spec.UID), Priority: p.priority, Bucket: p.bucket,
		GrantedSeconds: p.granted, Started: p.told, Ended: p.gone,
	}
	if !p.gone.IsZero() && termination != nil {
		said.Outcome = string(termination.Result().Outcome())
	}
	if p.problem != nil {
		said.Error = p.problem.Error()
	}
	return said, true
}

// named returns the pod with a name: NAMESPACE/NAME, or NAME if only one pod has it.
func (l *pods) named(name string) (*pod, error) {
	var found []*pod
	for _, p := range l.list() {
		if p.name() == name || !strings.Contains(name, "/") && p.spec.Name == name {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("there is no pod %q", name)
	case 1:
		return found[0], nil
	}
	return nil, errors.New("several pods have the name " + name + ", say NAMESPACE/NAME")
}
