package agent

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// A container that exits after a kill has failed does not make its pod one that was
// finished before the stop.
func TestFinishedBeforeStopIsDecidedByTheFirstStop(t *testing.T) {
	for finishedBefore, when := range map[bool]string{true: "before", false: "after"} {
		t.Run("finished "+when, func(t *testing.T) {
			p := newPods([]*v1.Pod{{}}, nil).all[0]
			p.endStart(nil, make([]<-chan struct{}, 1), nil)
			if finishedBefore {
				p.containerFinished()
			}
			p.beginStop(30)
			p.endStop(errLeaving)
			if !finishedBefore {
				p.containerFinished()
			}
			p.beginStop(0)
			require.Equal(t, finishedBefore, p.wasFinishedBeforeStop())
		})
	}
}

// A kill of a pod whose start is refused meanwhile can fail, and is then tried again.
func TestRefusedPodCanBeToldToStopAgain(t *testing.T) {
	p := newPods([]*v1.Pod{{}}, nil).all[0]
	p.beginStart(func(error) {})
	p.beginStop(30)
	p.refuseStart(errStoppedBeforeStart)
	p.endStop(errLeaving)
	require.False(t, p.wasToldToStop())
	p.beginStop(30)
	require.True(t, p.wasToldToStop())
}
