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

// generator makes random pods and delete options. The seed determines them.
type generator struct{ *rand.Rand }

// newGenerator returns a generator that always makes the same pods and options for a seed.
func newGenerator(seed uint64) generator {
	return generator{rand.New(rand.NewPCG(seed, 0))}
}

// oneIn returns true with a probability of 1/n.
func (g generator) oneIn(n int) bool { return g.IntN(n) == 0 }

// seconds returns a grace period: mostly a small number, sometimes nil, a negative number, or the
// largest one with which the API server's arithmetic does not overflow.
func (g generator) seconds() *int64 {
	const mostSeconds = math.MaxInt64 / int64(time.Second)
	switch g.IntN(10) {
	case 0:
		return nil
	case 1:
		return ptr.To([]int64{math.MinInt64, -mostSeconds, -2, -1}[g.IntN(4)])
	case 2:
		return ptr.To(mostSeconds - g.Int64N(3))
	case 3:
		return ptr.To(int64(0))
	default:
		return ptr.To(g.Int64N(60))
	}
}

// span returns a duration of up to half a minute.
func (g generator) span() time.Duration { return time.Duration(g.Int64N(int64(30 * time.Second))) }

// pod returns a pod in any phase, on a node or not. Half of the pods are being deleted.
func (g generator) pod() *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "web", Namespace: "default", UID: "u-1", ResourceVersion: "17", Generation: g.Int64N(3),
	}}
	pod.Spec.TerminationGracePeriodSeconds = g.seconds()
	if !g.oneIn(4) {
		pod.Spec.NodeName = "node-1"
	}
	phases := []v1.PodPhase{"", v1.PodPending, v1.PodRunning, v1.PodSucceeded, v1.PodFailed, v1.PodUnknown}
	pod.Status.Phase = phases[g.IntN(len(phases))]
	if g.oneIn(2) {
		forward, back := g.span(), g.span()
		end := time.Now().Add(forward - back)
		pod.DeletionTimestamp = ptr.To(metav1.NewTime(end.Round(0))) // without a monotonic part, as from the store
	}
	if pod.DeletionTimestamp != nil || g.oneIn(10) { // a few pods have only this one of the two fields
		pod.DeletionGracePeriodSeconds = g.seconds()
	}
	return pod
}

// options returns options for a delete, some of which the API server refuses, or nil.
func (g generator) options() *metav1.DeleteOptions {
	if g.oneIn(20) {
		return nil
	}
	options := &metav1.DeleteOptions{GracePeriodSeconds: g.seconds()}
	if g.oneIn(5) {
		options.Preconditions = g.preconditions()
	}
	if g.oneIn(10) {
		policies := []metav1.DeletionPropagation{metav1.DeletePropagationOrphan, metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, "", "Sideways"}
		options.PropagationPolicy = &policies[g.IntN(len(policies))]
	}
	if g.oneIn(10) {
		options.OrphanDependents = ptr.To(g.oneIn(2)) //nolint:staticcheck // deprecated, and validated all the same
	}
	if g.oneIn(10) {
		options.DryRun = [][]string{{}, {metav1.DryRunAll}, {"Some"}, {metav1.DryRunAll, metav1.DryRunAll}}[g.IntN(4)]
	}
	if g.oneIn(20) {
		options.IgnoreStoreReadErrorWithClusterBreakingPotential = ptr.To(g.oneIn(2))
	}
	return options
}

// preconditions returns preconditions on the UID and resourceVersion, which may fail.
func (g generator) preconditions() *metav1.Preconditions {
	wanted := &metav1.Preconditions{}
	if g.oneIn(2) {
		wanted.UID = ptr.To([]types.UID{"u-1", "u-2"}[g.IntN(2)])
	}
	if g.oneIn(2) {
		wanted.ResourceVersion = ptr.To([]string{"17", "16", ""}[g.IntN(3)])
	}
	return wanted
}
