//go:build go1.25

package drain_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// listing is an Options.Pods that a test scripts: answer gives the answer of each call, by its
// number from 0 on.
type listing struct {
	r      *rig
	answer func(call int) ([]*v1.Pod, error)
	asked  []time.Duration
}

func (l *listing) list(context.Context) ([]*v1.Pod, error) {
	n := 0
	l.r.locked(func() {
		n = len(l.asked)
		l.asked = append(l.asked, time.Since(l.r.began))
	})
	return l.answer(n)
}

func (r *rig) lists(answer func(call int) ([]*v1.Pod, error)) *listing {
	l := &listing{r: r, answer: answer}
	r.options.Pods = l.list
	return l
}

func ms(of ...int) []time.Duration {
	all := make([]time.Duration, len(of))
	for i, n := range of {
		all[i] = time.Duration(n) * time.Millisecond
	}
	return all
}

// A list that fails is asked for again, with a pause that doubles from 50 ms to 1 s. The first
// failure is reported, and the next one only after a complete list.
func TestListThatFails(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, r *rig) {
		l := r.lists(func(call int) ([]*v1.Pod, error) {
			if call < 7 || call == 8 {
				return nil, errNotReady
			}
			return r.currentPods(), nil
		})
		r.ends["web"], r.ends["etcd"] = 0, 0
		require.Equal(t, 1200*time.Millisecond, r.run())
		require.Equal(t, ms(
			0, 50, 150, 350, 750, // a second until the plan is made
			1000, 1050, 1150, // for the first bucket
			1150, 1200, // for the second
			1200, // before the release
		), l.asked)
		require.Equal(t, []string{"failed to list the pods: not synced", "failed to list the pods: not synced"}, r.failures())
		require.Equal(t, []call1{{"web", 1150 * time.Millisecond, 18}, {"etcd", 1200 * time.Millisecond, 28}}, r.killed())
	})
}

// A list that fails for good is asked for once a second at most. A bucket of which nothing is known
// is waited for until its end.
func TestListThatFailsForGood(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, r *rig) {
		l := r.lists(func(int) ([]*v1.Pod, error) { return nil, errNotReady })
		require.Equal(t, 31*time.Second, r.run())
		require.Len(t, r.failures(), 1)
		require.Empty(t, r.killed())
		require.InDelta(t, 55, len(l.asked), 5)
		require.Contains(t, r.heard(), "20s ends 0")
		require.Contains(t, r.heard(), "30s ends 1")
	})
}

// A call that hangs gets another one beside it after a second, and the first list that comes
// counts.
func TestListThatHangs(t *testing.T) {
	for name, test := range map[string]struct {
		hang   int // calls
		killed time.Duration
		asked  []time.Duration
	}{
		"once":    {1, time.Second, ms(0, 1000, 1000, 1000)},
		"5 times": {5, 5 * time.Second, ms(0, 1000, 2000, 3000, 4000, 5000, 5000, 5000)},
		"10 times": {10, 13 * time.Second, ms(
			0, 1000, 2000, 3000, 4000, 5000, 6000, 7000,
			8000, 10000, 13000, 13000, 13000, // ever slower, until one answers
		)},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, twoPods(), func(t *testing.T, r *rig) {
				l := r.lists(func(call int) ([]*v1.Pod, error) {
					if call < test.hang {
						<-r.over
					}
					return r.currentPods(), nil
				})
				r.ends["web"], r.ends["etcd"] = 0, 0
				r.run()
				require.Equal(t, test.asked, l.asked)
				require.Equal(t, test.killed, r.killed()[0].at)
				require.Equal(t, []string{"failed to list the pods: the time for it was spent"}, r.failures())
			})
		})
	}
}

// If more than eight calls hang the next one waits for a second longer each time. When one of them
// returns its list counts, as nothing newer is known.
func TestListThatHangsForGood(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, r *rig) {
		l := r.lists(func(call int) ([]*v1.Pod, error) {
			switch call {
			case 0:
				<-time.After(13 * time.Second)
				return []*v1.Pod{pod("web", 0, 60)}, nil
			default:
				<-r.over
				return nil, errNotReady
			}
		})
		r.ends["web"] = 0
		require.Equal(t, 15*time.Second, r.run())
		require.Equal(t, []call1{{"web", 13 * time.Second, 7}}, r.killed())
		require.Equal(t, ms(0, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 10000, 13000, 13000, 14000), l.asked)
	})
}

// Without a schedule the longest grace period of the first list is the schedule, so that list is waited for.
func TestFirstListWithoutASchedule(t *testing.T) {
	for name, test := range map[string]struct {
		takes time.Duration
		want  call1
	}{
		"slow":     {5 * time.Second, call1{"web", 5 * time.Second, 100}},
		"too slow": {31 * time.Second, call1{"web", 31 * time.Second, 29}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, r *rig) {
				r.request.Table.Schedule = nil
				r.lists(func(int) ([]*v1.Pod, error) {
					<-time.After(time.Until(r.began.Add(test.takes)))
					return []*v1.Pod{pod("web", 0, 100)}, nil
				})
				r.ends["web"] = 0
				r.run()
				require.Equal(t, []call1{test.want}, r.killed())
			})
		})
	}
}

// The list of a call that has hung does not count if it comes after that of a call that was made
// later, even if nothing newer comes.
func TestListThatComesTooLate(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, r *rig) {
		r.lists(func(call int) ([]*v1.Pod, error) {
			switch call {
			case 0:
				<-time.After(3 * time.Second)
				return []*v1.Pod{pod("stale", 0, 60)}, nil
			case 1:
				return r.currentPods(), nil
			default:
				return nil, errNotReady
			}
		})
		r.ends["web"] = 5 * time.Second
		r.run()
		require.Equal(t, []string{"etcd", "web"}, names(r.killed()))
	})
}

// The list of a call that has hung is not taken for the current one.
func TestListThatComesLate(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, r *rig) {
		r.lists(func(call int) ([]*v1.Pod, error) {
			if call == 0 {
				<-time.After(3 * time.Second)
				return []*v1.Pod{pod("stale", 0, 60)}, nil
			}
			return r.currentPods(), nil
		})
		r.ends["web"], r.ends["etcd"], r.ends["late"] = 5*time.Second, 5*time.Second, 0
		ended := r.start()
		advance(7 * time.Second)
		r.setPods(append(twoPods(), pod("late", high, 60))...)
		<-ended
		require.Equal(t, []string{"etcd", "late", "web"}, names(r.killed()))
	})
}

// The list of a call that has hung comes while the next one is waited for, which counts.
func TestListThatComesLateDuringTheNext(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, r *rig) {
		r.lists(func(call int) ([]*v1.Pod, error) {
			switch call {
			case 1: // of the first bucket
				<-time.After(5500 * time.Millisecond)
				return nil, nil
			case 2: // of the second
				<-time.After(800 * time.Millisecond)
				return append(twoPods(), pod("late", high, 60)), nil
			default:
				return r.currentPods(), nil
			}
		})
		r.ends["web"], r.ends["etcd"], r.ends["late"] = 4*time.Second, 0, 0
		r.run()
		require.Equal(t, []string{"etcd", "late", "web"}, names(r.killed()))
	})
}
