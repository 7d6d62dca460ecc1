//go:build go1.25

package shutdown_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// The manager does not change the pods of ListPods.
func TestTheManagerDoesNotChangePods(t *testing.T) {
	pod := shutdowntest.Pod("web", 0, 5)
	before := pod.DeepCopy()
	inBubble(t, []*v1.Pod{pod, nil}, func(t *testing.T, n *node) {
		n.run()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, before, pod)
	})
}
