//go:build linux

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
)

// finish waits until the last agent has done what is left to do, and looks at all of it.
func (n *crashedNode) finish(a *crashAgent) error {
	if _, ok := a.said("ready"); !ok {
		return errors.New("the last agent did not become ready")
	}
	resumes := !n.turned && !n.lost && sinceBoot()-n.began < 3*time.Second
	if !n.turned && !n.lost {
		if _, ok := a.said("ended"); !ok {
			return errors.New("the shutdown does not come to its end")
		}
	}
	if err := n.told(); err != nil {
		return err
	}
	if err := a.in.Close(); err != nil {
		return err
	}
	var report shutdown.Report
	var last string
	for line := range a.lines {
		a.heard(line)
		if said, ok := strings.CutPrefix(line, "agent: report "); ok {
			if err := json.Unmarshal([]byte(said), &report); err != nil {
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
	n.orders.Runs = append(n.orders.Runs, a.runs...)
	return n.checkServer()
}

// told waits until the API server has all that it is owed.
func (n *crashedNode) told() error {
	var missing []string
	for range 300 {
		pods, err := n.pods()
		if err != nil {
			return err
		}
		missing = nil
		for name := range n.owed {
			if pods[name].Status.Reason != shutdown.TerminatedReason {
				missing = append(missing, name)
			}
		}
		if len(missing) == 0 {
			return nil
		}
		<-time.After(50 * time.Millisecond)
	}
	n.blame("the final statuses of %v were on record and nobody has told them", missing)
	return nil
}

// pods are those of the node as the API server has them.
func (n *crashedNode) pods() (map[string]v1.Pod, error) {
	pods := map[string]v1.Pod{}
	for _, pod := range n.orders.Pods {
		got, err := n.server.api.Pods(pod.Namespace).Get(n.t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		pods[pod.Name] = *got
	}
	return pods, nil
}

// checkReport wants each pod in the report once, and those of the former agents too.
func (n *crashedNode) checkReport(report shutdown.Report, resumes bool) {
	signals, err := readSignals(n.orders.Journal)
	if err != nil {
		n.blame("%w", err)
	}
	fresh := signals[n.before:]
	n.signals = signals
	if n.turned && len(fresh) > 0 {
		n.blame("%v were killed in a shutdown that is over", fresh)
	}
	times := map[string]int{}
	for _, pod := range report.Pods {
		if times[pod.Name]++; times[pod.Name] == 2 {
			n.blame("pod %s is twice in the report", pod.Name)
		}
	}
	for name := range reported(n.stored.Report) {
		if times[name] == 0 && report.Started.Equal(n.stored.Report.Started) {
			n.blame("pod %s was stored and is not in the report", name)
		}
	}
	for _, s := range fresh {
		if times[s.Name] == 0 {
			n.blame("pod %s was killed and is not in the report", s.Name)
		}
	}
	if strings.Contains(strings.Join(report.Errors, "\n"), "graceful_node_shutdown") {
		n.blame("there was trouble with the files: %q", report.Errors)
	}
	if n.way == isCancelled && len(report.Pods) > 0 && report.Ended.IsZero() {
		n.blame("the report is not closed")
	}
	killed := map[string]bool{}
	for _, s := range signals {
		killed[s.Name] = true
	}
	if resumes && len(killed) != len(n.orders.Pods) {
		n.blame("only %d of %d pods were killed", len(killed), len(n.orders.Pods))
	}
}

// checkFolder wants nothing in the folder but what belongs there.
func (n *crashedNode) checkFolder() {
	entries, err := os.ReadDir(n.orders.StateDir)
	if err != nil {
		n.blame("%w", err)
	}
	for _, entry := range entries {
		switch entry.Name() {
		case "graceful_node_shutdown_progress", "graceful_node_shutdown_state", ".graceful_node_shutdown_lock":
		default:
			n.blame("%s is left in the folder", entry.Name())
		}
	}
}

// checkServer wants no pod to be called ended that runs, or has never been signalled.
func (n *crashedNode) checkServer() error {
	pods, err := n.pods()
	if err != nil {
		return err
	}
	ends := map[string]time.Duration{}
	for _, s := range append(n.former, n.signals...) {
		ends[s.Name] = s.Ends
	}
	for name, pod := range pods {
		until, signalled := ends[name]
		switch {
		case pod.Status.Phase == v1.PodRunning:
		case slices.Contains(n.orders.Runs, name):
			n.blame("pod %s runs again and is called %s", name, pod.Status.Phase)
		case !signalled:
			n.blame("pod %s was never signalled and is called %s", name, pod.Status.Phase)
		case !n.orders.Booted && sinceBoot() < until:
			n.blame("pod %s runs for %v more and is called %s", name, until-sinceBoot(), pod.Status.Phase)
		}
	}
	return nil
}
