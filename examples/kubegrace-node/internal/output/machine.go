package output

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubegrace/kubegrace/examples/internal/duration"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/machine"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
)

// NodeReport is what kubegrace-node status has found on one machine. Programs get it as JSON or YAML.
type NodeReport struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"` // NodeReport
	Verdict    machine.Verdict `json:"verdict"`
	*machine.State
	// PodSources names where the pods come from: files, or who has listed them. It is empty if the pods are
	// not known.
	PodSources []string `json:"podSources,omitempty"`
	// Plan is what the next shutdown does to the pods. It is nil if no agent drains them, or if they are not
	// known.
	Plan *nodeplan.Document `json:"plan,omitempty"`
}

// showNodeReport shows what status has found: the verdict, what was seen, the reasons, what to do, what could not be seen,
// and the plan.
func (t *terminal) showNodeReport(r NodeReport) {
	t.showParagraph("At the next systemctl poweroff: " + r.Verdict.Text)
	seen := facts(r)
	if len(seen) > 0 {
		t.text.WriteByte('\n')
	}
	for _, fact := range seen {
		const nameWidth = 11
		t.showWrapped(fmt.Sprintf("%-*s", nameWidth, fact.name), strings.Repeat(" ", nameWidth), fact.text)
	}
	t.showList("Why, and what else:", r.Verdict.Why)
	if len(r.Verdict.Do) > 0 {
		t.text.WriteString("\nWhat to do:\n")
	}
	for _, step := range r.Verdict.Do {
		t.showItem(step.Text)
		t.showLineToPaste(step.Command)
	}
	unseen := make([]string, 0, len(r.NotSeen))
	for _, u := range r.NotSeen {
		line := u.What + ": " + u.Why
		if u.WayOut != "" {
			line += " (" + u.WayOut + ")"
		}
		unseen = append(unseen, line)
	}
	t.showList("Not seen:", unseen)
	if r.Plan != nil {
		t.text.WriteByte('\n')
		t.showPlan(*r.Plan)
	}
}

// fact is a line of a report: something that was seen. The name is "" if the line above has the same name.
type fact struct{ name, text string }

// facts returns what was seen on the machine, one fact for each line.
func facts(r NodeReport) (all []fact) {
	previousName := ""
	add := func(name, format string, args ...any) {
		shownName := name
		if name == previousName {
			shownName = ""
		}
		previousName = name
		all = append(all, fact{shownName, fmt.Sprintf(format, args...)})
	}
	if r.Logind != nil {
		add("logind", "waits for up to %s", machine.LimitText(r.Logind.Limit()))
		if len(r.Logind.Locks) == 0 {
			add("locks", "none for shutdowns")
		}
		for _, lock := range r.Logind.Locks {
			add("locks", "%s (PID %d, user %d): %s, %s: %s", lock.Who, lock.PID, lock.UID, lock.Mode, lock.What, lock.Why)
		}
	}
	for i, file := range slices.Backward(r.LimitFiles) { // the last file sets the limit and is shown first
		note := "overridden"
		if i == len(r.LimitFiles)-1 {
			note = "sets the limit"
		}
		add("files", "%s: %s, %s", file.Path, machine.LimitText(file.Limit()), note)
	}
	if r.Agent != nil {
		activity := "holds no inhibitor lock"
		switch {
		case r.Agent.Drained:
			activity = "has drained this machine"
		case r.Agent.ShuttingDown:
			activity = "is stopping the pods"
		case r.Agent.Held:
			activity = "holds the inhibitor lock"
		}
		pods := fmt.Sprintf("has %d pods", r.Agent.PodCount)
		if r.Agent.PodsUnknown {
			pods = "cannot list its pods"
		}
		add("agent", "kubegrace-node %s, asks for %s, and %s", activity, duration.Seconds(r.Agent.AskedSeconds), pods)
	}
	for _, kubelet := range r.Kubelets {
		add("kubelet", "%s (PID %d)", kubelet.Program, kubelet.PID)
	}
	if r.ConfigSource != "" {
		add("config", "%s: %s", r.ConfigSource, ConfigText(r.Config.Shutdown))
	}
	if len(r.PodSources) > 0 {
		add("pods", "from %s", strings.Join(r.PodSources, " and "))
	}
	return all
}

// Metrics returns a report as Prometheus metrics. What is not known has no metric, because a 0 would look like
// a value.
func Metrics(r NodeReport) prometheus.Gatherer {
	registry := prometheus.NewRegistry()
	add := func(name, help string, value float64) {
		gauge := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "kubegrace", Subsystem: "node", Name: name, Help: help})
		gauge.Set(value)
		registry.MustRegister(gauge)
	}
	add("status", "What the next shutdown would do: 0 no pod loses time, 2 pods lose time, 3 nothing waits for the pods, 4 not enough could be seen.", float64(r.Verdict.Status))
	if r.Logind != nil {
		add("limit_seconds", "How long systemd-logind waits at most.", r.Logind.LimitSeconds)
	}
	addNeeded := func(needed float64) { add("needed_seconds", "How long the agent asks the host to wait.", needed) }
	addPods := func(pods, cutShort int, lost int64) {
		add("pods", "How many pods the machine has.", float64(pods))
		add("pods_cut_short", "How many pods get less than they ask for.", float64(cutShort))
		add("lost_seconds", "The sum of what pods ask for and do not get.", float64(lost))
	}
	// The plan says most, then the agent's status. The configuration says only how long the kubelet asks the host to wait.
	configuredSeconds, isConfigKnown := r.NeededSeconds()
	switch {
	case r.Plan != nil:
		addNeeded(r.Plan.NeededSeconds)
		addPods(r.Plan.Summary.PodCount, r.Plan.Summary.CutShort, r.Plan.Summary.LostSeconds)
	case r.Agent != nil:
		addNeeded(r.Agent.AskedSeconds)
		if !r.Agent.PodsUnknown {
			addPods(r.Agent.PodCount, r.Agent.CutShort, r.Agent.LostSeconds)
		}
	case isConfigKnown:
		addNeeded(configuredSeconds)
	}
	return registry
}
