package command_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The demonstration is what people see first: it must end in time, in order, and
// show each of the things that it promises.
func TestDemo(t *testing.T) {
	t.Parallel()
	began := time.Now()
	p := start(t, "--config=../../demo/kubelet.yaml", "--manifests=../../demo/pods", "--shutdown-after=10ms")
	require.Zero(t, p.exit())
	require.Less(t, time.Since(began), 18*time.Second, "and 2 s of idling are left out here")
	require.Empty(t, p.stderr.String())

	out := p.out.String()
	require.NotContains(t, out, "Warning")
	require.Contains(t, out, "Shutting down 9 pods in 4 buckets, the lowest priority first")
	ended := goneIn(out)
	require.Len(t, ended, 9)
	buckets := []string{"batch/", "shop/", "data/", "kube-system/"}
	require.True(t, slices.IsSortedFunc(ended, func(a, b string) int {
		return bucketOf(buckets, a) - bucketOf(buckets, b)
	}), "bucket after bucket: %v", ended)

	for _, want := range []string{
		"shop/web                 runs its preStop hook: sleep of 2 s",
		"shop/cart proxy          waits, a sidecar stops last",
		"batch/stubborn: container main did not end on SIGTERM and was killed 3.0 s later",
		"8 of 9 pods stopped in time.",
	} {
		require.Contains(t, out, want)
	}
}

// The page of this program shows the plan of the demonstration.
func TestPlanOfThePage(t *testing.T) {
	t.Parallel()
	out, stderr, status := tell(t, "plan", "--config=../../demo/kubelet.yaml", "--manifests=../../demo/pods")
	require.Zero(t, status, stderr)
	page, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	for line := range strings.Lines(out) {
		require.Contains(t, string(page), strings.TrimRight("    "+line, " \n")+"\n")
	}
}

// goneIn gives the pods in the order in which they were gone.
func goneIn(out string) []string {
	var pods []string
	for _, match := range regexp.MustCompile(`(?m) s  (\S+) +gone after`).FindAllStringSubmatch(out, -1) {
		pods = append(pods, match[1])
	}
	return pods
}

func bucketOf(buckets []string, pod string) int {
	return slices.IndexFunc(buckets, func(namespace string) bool { return strings.HasPrefix(pod, namespace) })
}
