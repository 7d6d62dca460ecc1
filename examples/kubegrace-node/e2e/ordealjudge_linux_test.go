//go:build e2e

package e2e_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/examples/internal/machine"
)

// at returns the time at which a container has written a file; zero: it has not.
func (o *ordeal) at(t *testing.T, pod *v1.Pod, what string) time.Time {
	info, err := os.Stat(filepath.Join(o.seen, pod.Name+what))
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}
	}
	require.NoError(t, err)
	return info.ModTime()
}

// judgeContainers judges a power off by what the containers saw, and returns when they have ended.
func (o *ordeal) judgeContainers(t *testing.T, pods []*v1.Pod, asked, off time.Time) (ends map[types.UID]time.Time) {
	ends = map[types.UID]time.Time{}
	for i, pod := range pods {
		p, term, end := ordealPods[i], o.at(t, pod, ".term"), o.at(t, pod, ".end")
		require.False(t, term.IsZero(), "%s has had no SIGTERM", p.name)
		due := min(p.grace, p.work)
		if o.wasDown(term, p.grace) {
			due = min(due, ordealLeast)
		}
		assert.GreaterOrEqual(t, end.Sub(term), due-ordealStart, "%s has had its grace period", p.name)
		assert.True(t, end.Before(off), "%s has ended before the machine", p.name)
		for j, previous := range pods[:i] {
			if ordealPods[j].priority < p.priority {
				assert.False(t, term.Before(ends[previous.UID]), "%s was told to stop before %s had ended", p.name, ordealPods[j].name)
			}
		}
		ends[pod.UID] = end
	}
	begins := slices.IndexFunc(o.m.Journal(t), func(e machine.Entry) bool {
		return e.MessageID == machine.ShuttingDown && e.Time.After(asked) && e.Time.Before(off)
	})
	if assert.GreaterOrEqual(t, begins, 0, "logind logs the shutdown") {
		at := o.m.Journal(t)[begins].Time
		assert.Less(t, at.Sub(asked), ordealLimit+ordealSlack, "the machine goes in its time")
		for i, pod := range pods {
			assert.True(t, ends[pod.UID].Before(at.Add(ordealTick)), "%s has ended before logind goes on", ordealPods[i].name)
		}
	}
	return ends
}

// wasDown reports whether containerd was down in the grace period of a pod that has had its SIGTERM at a time.
// A deadline never moves, so that what the runtime is away for is taken from the pod, but for ordealLeast.
func (o *ordeal) wasDown(term time.Time, grace time.Duration) bool {
	return o.died.After(term.Add(-grace)) && o.died.Before(term.Add(grace))
}

// judgeStatuses judges what the API server has after the boot, and what it was told before.
func (o *ordeal) judgeStatuses(t *testing.T, pods []*v1.Pod, ends map[types.UID]time.Time, before int) {
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(o.api.Pods(), func(p v1.Pod) bool { return p.Status.Phase != v1.PodFailed })
	}, time.Minute, ordealTick, "the ends of all pods")
	for _, pod := range o.api.Pods() {
		i := slices.IndexFunc(pods, func(p *v1.Pod) bool { return p.UID == pod.UID })
		assert.Equal(t, "Terminated", pod.Status.Reason, pod.Name)
		for _, c := range pod.Status.ContainerStatuses {
			if !assert.NotNil(t, c.State.Terminated, pod.Name) || c.State.Terminated.ExitCode == 255 { // containerd 2 does not know the code of what ended while it was away
				continue
			}
			killed := c.State.Terminated.ExitCode == 128+9 && o.wasDown(o.at(t, &pod, ".term"), ordealPods[i].grace)
			assert.True(t, killed || c.State.Terminated.ExitCode == ordealPods[i].code, "exit code %d of %s", c.State.Terminated.ExitCode, pod.Name)
		}
	}
	for _, r := range o.api.Requests()[before:] {
		var patch struct {
			Status v1.PodStatus `json:"status"`
		}
		i := slices.IndexFunc(pods, func(p *v1.Pod) bool { return r.Verb == "patch" && p.Name == r.Name })
		if i >= 0 && json.Unmarshal(r.Body, &patch) == nil && patch.Status.Phase == v1.PodFailed {
			assert.True(t, r.Answered.IsZero() || r.Answered.After(ends[pods[i].UID]), "the API server was told of the end of %s before it was", r.Name)
		}
	}
}
