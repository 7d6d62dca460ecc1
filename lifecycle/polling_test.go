//go:build go1.25

package lifecycle_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// losingRuntime loses every second StopContainer call: it does nothing and returns nil.
type losingRuntime struct {
	*lifecycletest.Runtime

	calls atomic.Int64
}

func (r *losingRuntime) StopContainer(ctx context.Context, id string, seconds int64) error {
	if r.calls.Add(1)%2 == 1 {
		return nil
	}
	return r.Runtime.StopContainer(ctx, id, seconds)
}

// A runtime polls every 5 s, loses half of its stops, and is restarted from time to time. Every pod
// ends, no hook runs twice, nothing that is running is reported as ended (the judge checks this), and
// nothing is kept.
func TestRuntimeThatPollsAndLosesStops(t *testing.T) {
	losing := &losingRuntime{}
	inBubble(t, graceSeconds(30), func(b *testBed) {
		for i := range 10 {
			b.rt.Away(time.Duration(20*i+7)*time.Second, time.Duration(20*i+10)*time.Second)
		}
		b.rt.SetLists(lifecycletest.Lists{Poll: 5 * time.Second})
		var pods []*v1.Pod
		var kills sync.WaitGroup
		for i := range 100 {
			pod := b.pod.DeepCopy()
			pod.Name, pod.UID = "pod-"+strconv.Itoa(i), types.UID(strconv.Itoa(i))
			pod.Spec.Containers = []v1.Container{containerSpec("app", scriptedExec()), containerSpec("web", nil)}
			pods = append(pods, pod)
			b.rt.Start(pod, "app", pod.Name+"/app", lifecycletest.Script{ExitAfterTerm: time.Duration(i) * 100 * time.Millisecond})
			b.rt.Start(pod, "web", pod.Name+"/web", lifecycletest.Script{IgnoreTerm: i%10 == 0})
			kills.Go(func() {
				result, err := b.KillPod(b.quietContext(), pod, lifecycle.Request{})
				require.NoError(b, err)
				require.Len(b, result.Containers, 2)
			})
		}
		kills.Wait()
		require.Len(b, b.rt.Exits(), 200)
		require.Len(b, b.rt.Execs(), 100)
		for _, pod := range pods {
			b.Forget(pod)
		}
		require.Zero(b, b.Pods())
	}, func(o *lifecycle.TerminatorOptions) {
		losing.Runtime = o.Runtime.(*lifecycletest.Runtime)
		o.Runtime, o.StopTimeoutSlack = losing, 10*time.Second
	})
}
