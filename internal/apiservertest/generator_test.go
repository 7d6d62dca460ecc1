package apiservertest

import (
	"math"
	"math/rand/v2"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// generator makes pods and delete options of all kinds, the same ones in every run.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) generator {
	return generator{rand.New(rand.NewPCG(seed, 0))}
}

// rarely is true one time in n.
func (g generator) rarely(n int) bool { return g.IntN(n) == 0 }

// seconds are mostly few, sometimes none, negative, or the most that the API
// server's arithmetic bears.
func (g generator) seconds() *int64 {
	const most = math.MaxInt64 / int64(time.Second)
	switch g.IntN(10) {
	case 0:
		return nil
	case 1:
		return ptr.To([]int64{math.MinInt64, -most, -2, -1}[g.IntN(4)])
	case 2:
		return ptr.To(most - g.Int64N(3))
	case 3:
		return ptr.To(int64(0))
	default:
		return ptr.To(g.Int64N(60))
	}
}

// span is up to half a minute, by the nanosecond.
func (g generator) span() time.Duration { return time.Duration(g.Int64N(int64(30 * time.Second))) }

func (g generator) pod() *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "web", Namespace: "default", UID: "u-1", ResourceVersion: "17", Generation: g.Int64N(3),
	}}
	pod.Spec.TerminationGracePeriodSeconds = g.seconds()
	if !g.rarely(4) {
		pod.Spec.NodeName = "node-1"
	}
	phases := []v1.PodPhase{"", v1.PodPending, v1.PodRunning, v1.PodSucceeded, v1.PodFailed, v1.PodUnknown}
	pod.Status.Phase = phases[g.IntN(len(phases))]
	if g.rarely(2) {
		forward, back := g.span(), g.span()
		end := time.Now().Add(forward - back)
		pod.DeletionTimestamp = ptr.To(metav1.NewTime(end.Round(0))) // as it comes from the store, without a monotonic part
	}
	if pod.DeletionTimestamp != nil || g.rarely(10) {
		pod.DeletionGracePeriodSeconds = g.seconds()
	}
	return pod
}

func (g generator) options() *metav1.DeleteOptions {
	options := &metav1.DeleteOptions{GracePeriodSeconds: g.seconds()}
	if g.rarely(5) {
		options.Preconditions = g.preconditions()
	}
	if g.rarely(10) {
		policies := []metav1.DeletionPropagation{metav1.DeletePropagationOrphan, metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, "", "Sideways"}
		options.PropagationPolicy = &policies[g.IntN(len(policies))]
	}
	if g.rarely(10) {
		options.OrphanDependents = ptr.To(g.rarely(2)) //nolint:staticcheck // deprecated, and validated all the same
	}
	if g.rarely(10) {
		options.DryRun = [][]string{{}, {metav1.DryRunAll}, {"Some"}, {metav1.DryRunAll, metav1.DryRunAll}}[g.IntN(4)]
	}
	if g.rarely(20) {
		options.IgnoreStoreReadErrorWithClusterBreakingPotential = ptr.To(g.rarely(2))
	}
	return options
}

// preconditions hold or do not, one, both or neither of them.
func (g generator) preconditions() *metav1.Preconditions {
	wanted := &metav1.Preconditions{}
	if g.rarely(2) {
		wanted.UID = ptr.To([]types.UID{"u-1", "u-2"}[g.IntN(2)])
	}
	if g.rarely(2) {
		wanted.ResourceVersion = ptr.To([]string{"17", "16", ""}[g.IntN(3)])
	}
	return wanted
}
