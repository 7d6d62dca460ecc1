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

// at returns when a pod's container last wrote its file in /seen with this ending (.term or .end); zero: it
// has not.
func (o *ordeal) at(t *testing.T, pod *v1.Pod, what string) time.Time {
	info, err := os.Stat(filepath.Join(o.seen, pod.Name+what))
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}
	}
	require.NoError(t, err)
	return info.ModTime()
}

// judgeContainers checks a power off by the files that the containers have written: each had SIGTERM in the
// order of priorities and its grace period, and ended before the machine did. It returns when they have ended. asked is when
// the machine was last asked to power off, and off when it was off.
func (o *ordeal) judgeContainers(t *testing.T, pods []*v1.Pod, asked, off time.Time) (ends map[types.UID]time.Time) {
	ends = map[types.UID]time.Time{}
	for i, pod := range pods {
		p, term, end := ordealPods[i], o.at(t, pod, ".term"), o.at(t, pod, ".end")
		require.False(t, term.IsZero(), "%s has had no SIGTERM", p.name)
		due := min(p.grace, p.work) // the least time from SIGTERM to the end
		if o.wasDown(term, p.grace) {
			due = min(due, ordealLeast)
		}
		assert.GreaterOrEqual(t, end.Sub(term), due-ordealStart, "%s must get its grace period", p.name)
		assert.True(t, end.Before(off), "%s must end before the machine", p.name)
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
		assert.Less(t, at.Sub(asked), ordealLimit+ordealSlack, "the machine must go down within its limit")
		for i, pod := range pods {
			assert.True(t, ends[pod.UID].Before(at.Add(ordealTick)), "%s must end before logind proceeds with the shutdown", ordealPods[i].name)
		}
	}
	return ends
}

// wasDown reports whether containerd may have been down during a pod's grace period; term is when the pod had
// SIGTERM. Such a pod may get less than its grace period, though at least ordealLeast: its deadline does not
// move while the runtime is away.
func (o *ordeal) wasDown(term time.Time, grace time.Duration) bool {
	return o.died.After(term.Add(-grace)) && o.died.Before(term.Add(grace))
}

// judgeStatuses checks what the API server knows after the boot: each pod is Failed, with its container's exit
// code. It also checks, in the requests from index before on, that the end of no pod was reported before it
// happened.
func (o *ordeal) judgeStatuses(t *testing.T, pods []*v1.Pod, ends map[types.UID]time.Time, before int) {
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(o.pods(t), func(p v1.Pod) bool { return p.Status.Phase != v1.PodFailed })
	}, time.Minute, ordealTick, "the API server must know the end of each pod")
	for _, pod := range o.pods(t) {
		i := slices.IndexFunc(pods, func(p *v1.Pod) bool { return p.UID == pod.UID })
		assert.Equal(t, "Terminated", pod.Status.Reason, pod.Name)
		for _, c := range pod.Status.ContainerStatuses {
			if !assert.NotNil(t, c.State.Terminated, pod.Name) || c.State.Terminated.ExitCode == 255 { // containerd 2 gives 255 if a container ended while containerd was away
				continue
			}
			// A container may also have been killed, if containerd was down during its grace period.
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
