package agent

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

func TestAContainerThatAFailedKillHasEndedDidNotEndByItself(t *testing.T) {
	for byItself, when := range map[bool]string{true: "before", false: "after"} {
		t.Run(when, func(t *testing.T) {
			p := newPods([]*v1.Pod{{}}, nil).all[0]
			exited := make(chan struct{})
			p.settle(nil, []<-chan struct{}{exited}, nil)
			if byItself {
				close(exited)
				p.conclude()
			}
			p.tell(30)
			p.end(errLeaving)
			if !byItself {
				close(exited)
				p.conclude()
			}
			p.tell(0)
			require.Equal(t, byItself, p.endedByItself())
		})
	}
}
