//go:build go1.25

package shutdown_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// listingAgent has the list of an agent's pods. The agent adds a pod to it before it calls Admit, and removes the pod if it is
// refused.
type listingAgent struct {
	mu   sync.Mutex // guards pods
	pods []*v1.Pod
}

// list returns a copy of the list.
func (a *listingAgent) list() []*v1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.pods)
}

// add adds a pod to the list.
func (a *listingAgent) add(pod *v1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pods = append(a.pods, pod)
}

// remove removes a pod from the list.
func (a *listingAgent) remove(pod *v1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pods = slices.DeleteFunc(a.pods, func(other *v1.Pod) bool { return other == pod })
}

// Each of 1,000 goroutines adds a pod to the agent's list and calls Admit, while another one calls Trigger. No pod is admitted after
// the announcement, and every pod that was admitted before it is killed.
func TestEveryAdmittedPodIsKilled(t *testing.T) {
	const admissions = 1000
	results := map[bool]int{} // how many pods were admitted, and how many were refused
	for round := range 10 {
		inBubble(t, noPods(), func(t *testing.T, n *node) {
			agent := &listingAgent{}
			n.opts.Source, n.opts.ListPods = nil, shutdown.ListPodsFunc(agent.list, nil)
			n.run()
			var racing sync.WaitGroup
			var announced atomic.Bool
			admitted := make([]bool, admissions)
			start := make(chan struct{})
			for i := range admissions {
				racing.Go(func() {
					pod := shutdowntest.Pod(fmt.Sprintf("pod-%d", i), regularPriority, 30)
					<-start
					isAnnounced := announced.Load()
					agent.add(pod)
					if admitted[i] = n.admits(pod); !admitted[i] {
						agent.remove(pod)
					}
					if isAnnounced && admitted[i] {
						t.Errorf("%s was admitted after the announcement", pod.Name)
					}
				})
				if i == admissions/10*round { // each round announces the shutdown after another number of admissions
					racing.Go(func() {
						<-start
						if err := n.m.Trigger(source.Event{}); err != nil {
							t.Error(err)
						}
						announced.Store(true)
					})
				}
			}
			close(start)
			racing.Wait()
			n.advance(time.Minute)

			for i, wasAdmitted := range admitted {
				name := fmt.Sprintf("pod-%d", i)
				_, isKilled := n.killer.Kill(name)
				require.False(t, wasAdmitted && !isKilled, "%s was admitted and not killed", name)
				results[wasAdmitted]++
			}
		})
	}
	require.Len(t, results, 2, "some admissions come before the announcement and some after it: %v", results)
}
