package command_test

import (
	"regexp"
	"slices"
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
	ended := regexp.MustCompile(`(?m)^([a-z-]+)/\S+ +gone after`).FindAllStringSubmatch(out, -1) // each bucket is a namespace
	require.Len(t, ended, 9)
	ended = slices.CompactFunc(ended, func(a, b []string) bool { return a[1] == b[1] })
	require.Equal(t, [][]string{{"batch"}, {"shop"}, {"data"}, {"kube-system"}}, [][]string{ended[0][1:], ended[1][1:], ended[2][1:], ended[3][1:]}, "bucket after bucket")
	require.Len(t, ended, 4)

	for _, want := range []string{
		"shop/web                 has 6s to stop, its preStop hook first (sleep of 2s)",
		"batch/stubborn: container main did not end on SIGTERM and was killed 3", // 3 seconds later, and some tenths on a busy machine
		"killed, its time was up",
	} {
		require.Contains(t, out, want)
	}
}
