//go:build linux && go1.25

package apistatus_test

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
)

// finishLastAgent waits until the last agent has finished the shutdown and sent the statuses, stops
// it, and checks its report, its files and the API server.
func (n *crashedNode) finishLastAgent(a *crashAgent) error {
	if _, ok := a.awaitLine("ready"); !ok {
		return errors.New("the last agent did not become ready")
	}
	continues := !n.shutdownOver && !n.agentCannotKnow
	resumes := continues && sinceBoot()-n.began < 3*time.Second // there is time left to kill all pods
	if continues {
		if _, ok := a.awaitLine("ended"); !ok {
			return errors.New("the shutdown does not end")
		}
	}
	if err := n.awaitFlushes(); err != nil {
		return err
	}
	if err := a.stdin.Close(); err != nil {
		return err
	}
	var report shutdown.Report
	var last string
	for line := range a.lines {
		a.parseLine(line)
		if text, ok := strings.CutPrefix(line, "agent: report "); ok {
			if err := json.Unmarshal([]byte(text), &report); err != nil {
				return err
			}
		} else {
			last = line
		}
	}
	if err := a.cmd.Wait(); err != nil {
		return errors.Join(err, errors.New(last))
	}
	n.checkReport(report, resumes)
	n.checkFolder()
	n.config.StartedPods = append(n.config.StartedPods, a.startedPods...)
	return n.checkServer()
}

// awaitFlushes waits until the API server has all final statuses that must be sent. The network has no faults any
// more, because with most of them a status needs an unknown number of tries.
func (n *crashedNode) awaitFlushes() error {
	n.proxy.Script(nil)
	var missing []string
	for range 6000 { // five minutes: calls are repeated every 30 s, and a busy API server fails some
		pods, err := n.podsOfTheServer()
		if err != nil {
			return err
		}
		missing = nil
		for name := range n.mustBeFlushed {
			if pods[name].Status.Reason != "Terminated" {
				missing = append(missing, name)
			}
		}
		if len(missing) == 0 {
			return nil
		}
		<-time.After(50 * time.Millisecond)
	}
	stored, err := readLog(n.config.StateDir)
	if err != nil {
		return err
	}
	pods, err := n.podsOfTheServer()
	if err != nil {
		return err
	}
	for _, name := range missing {
		status := pods[name].Status
		i := slices.IndexFunc(stored.pods, func(p *node.Pod) bool { return p.Name == name })
		if i < 0 {
			n.addViolation("the final status of %s was stored and not sent: the server has phase %q, reason %q; the log lacks it, and has %+v", name, status.Phase, status.Reason, stored.shutdown)
			continue
		}
		p := stored.pods[i]
		n.addViolation("the final status of %s was stored and not sent: the server has phase %q, reason %q; the log has signalled %v, ended %v, told %v of %+v", name, status.Phase, status.Reason, p.Signalled, p.Ended, p.Told, stored.shutdown)
	}
	return nil
}

// podsOfTheServer returns the node's pods on the API server by name.
func (n *crashedNode) podsOfTheServer() (map[string]v1.Pod, error) {
	pods := map[string]v1.Pod{}
	for _, pod := range n.config.Pods {
		got, err := n.server.api.Pods(pod.Namespace).Get(n.t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		pods[pod.Name] = *got
	}
	return pods, nil
}

// checkReport checks that the report has each killed pod once, including those that previous agents killed. resumes
// says that the last agent had time to kill all pods, so that each must have been killed.
func (n *crashedNode) checkReport(report shutdown.Report, resumes bool) {
	signals, err := readSignals(n.config.Journal)
	if err != nil {
		n.addViolation("%w", err)
	}
	n.signals = signals
	fresh := n.checkFresh()
	times := map[string]int{}
	for _, pod := range report.Pods {
		if times[pod.Name]++; times[pod.Name] == 2 {
			n.addViolation("pod %s is in the report twice", pod.Name)
		}
	}
	for _, pod := range n.stored.ofShutdown() {
		if times[pod.Name] == 0 && report.Started.Equal(n.stored.shutdown.Wall) {
			n.addViolation("pod %s was stored and is not in the report", pod.Name)
		}
	}
	for _, s := range fresh {
		if times[s.Name] == 0 {
			n.addViolation("pod %s was killed and is not in the report", s.Name)
		}
	}
	if strings.Contains(strings.Join(report.Errors, "\n"), "graceful_node_shutdown") {
		n.addViolation("the state files failed: %q", report.Errors)
	}
	if n.ending == isCancelled && len(report.Pods) > 0 && report.Ended.IsZero() {
		n.addViolation("the report is not closed")
	}
	killed := map[string]bool{}
	for _, s := range signals {
		killed[s.Name] = true
	}
	if resumes && len(killed) != len(n.config.Pods) {
		n.addViolation("only %d of %d pods were killed", len(killed), len(n.config.Pods))
	}
}

// checkFolder checks that the state folder has only an agent's files.
func (n *crashedNode) checkFolder() {
	entries, err := os.ReadDir(n.config.StateDir)
	if err != nil {
		n.addViolation("%w", err)
	}
	for _, entry := range entries {
		switch entry.Name() {
		case "graceful_node_shutdown_log", "graceful_node_shutdown_state", ".graceful_node_shutdown_lock":
		default:
			n.addViolation("%s is left over in the state folder", entry.Name())
		}
	}
}

// checkServer checks that the API server has no pod as ended that runs or was never signalled.
func (n *crashedNode) checkServer() error {
	pods, err := n.podsOfTheServer()
	if err != nil {
		return err
	}
	ends := map[string]time.Duration{}
	for _, s := range append(n.signalsOfPreviousBoot, n.signals...) {
		ends[s.Name] = s.Ends
	}
	for name, pod := range pods {
		until, signalled := ends[name]
		switch {
		case pod.Status.Phase == v1.PodRunning:
		case slices.Contains(n.config.StartedPods, name):
			n.addViolation("pod %s was started again, and its phase is %s", name, pod.Status.Phase)
		case !signalled && !n.storedOfPreviousBoot[name]:
			n.addViolation("pod %s was never signalled, and its phase is %s", name, pod.Status.Phase)
		case !n.config.NextBoot && sinceBoot() < until:
			n.addViolation("pod %s runs for another %v, and its phase is %s", name, until-sinceBoot(), pod.Status.Phase)
		}
	}
	return nil
}
