package rollout

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEndpointsOfPods(t *testing.T) {
	s := Settings{GraceSeconds: 30}
	p := newPod("a", s, Scenario{SleepSeconds: 5})
	conditions := func() [3]bool {
		c := p.endpoint().Conditions
		return [3]bool{*c.Ready, *c.Serving, *c.Terminating}
	}
	require.Equal(t, [3]bool{false, false, false}, conditions(), "it has not started")
	p.object.Status = status(true)
	require.Equal(t, [3]bool{true, true, false}, conditions())
	p.object.DeletionTimestamp = new(metav1.Time)
	require.Equal(t, [3]bool{false, true, true}, conditions(), "it still answers on open connections")
	p.object.Status = status(false)
	require.Equal(t, [3]bool{false, false, true}, conditions())
}
