package command_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The demo of the README runs with its nine pods. It must end, stop them bucket after bucket, and show a
// preStop hook, and a container that ignores SIGTERM and is killed after 3 s.
func TestDemo(t *testing.T) {
	t.Parallel()
	began := time.Now()
	p := start(t, "demo", "--config=../../demo/kubelet.yaml", "--manifests=../../demo/pods", "--shutdown-after=10ms")
	require.Zero(t, p.waitExit())
	require.Less(t, time.Since(began), 90*time.Second, "ten times what it takes on an idle machine")
	require.Empty(t, p.stderr.String())

	out := p.out.String()
	require.NotContains(t, out, "Warning")
	require.Contains(t, out, "Shutting down 9 pods in 4 buckets, the lowest priority first")
	ended := stopOrder(out)
	require.Len(t, ended, 9)
	buckets := []string{"batch/", "shop/", "data/", "kube-system/"}
	require.True(t, slices.IsSortedFunc(ended, func(a, b string) int {
		return bucketOf(buckets, a) - bucketOf(buckets, b)
	}), "the pods must stop bucket after bucket: %v", ended)

	for _, want := range []string{
		"shop/web                 has 6s to stop, its preStop hook first (sleep of 2s)",
		"batch/stubborn: container main did not end on SIGTERM and was killed 3", // 3 seconds later, and some tenths on a busy machine
		"killed, its time was up",
	} {
		require.Contains(t, out, want)
	}
}

// stopOrder returns the pods in the order in which the output says that they have stopped.
func stopOrder(out string) []string {
	var pods []string
	for _, match := range regexp.MustCompile(`(?m)^(\S+) +gone after`).FindAllStringSubmatch(out, -1) {
		pods = append(pods, match[1])
	}
	return pods
}

// bucketOf returns the index of a pod's bucket. Each bucket of the demo is a namespace.
func bucketOf(buckets []string, pod string) int {
	return slices.IndexFunc(buckets, func(namespace string) bool { return strings.HasPrefix(pod, namespace) })
}
