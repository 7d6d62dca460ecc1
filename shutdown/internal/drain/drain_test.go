//go:build go1.25

package drain_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/drain"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
	"github.com/kubegrace/kubegrace/shutdown/internal/outbox"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// The listener hears of everything once and in order.
func TestWhatTheListenerHears(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, r *rig) {
		r.ends["web"], r.ends["etcd"] = 5*time.Second, 2*time.Second
		require.Equal(t, 7*time.Second, r.run())
		require.Equal(t, []string{
			"0s planned 2",
			"0s begins 0", "0s signalled web", "5s ended web", "5s ends 0",
			"5s begins 1", "5s signalled etcd", "7s ended etcd", "7s ends 1",
		}, r.heard())
		require.Empty(t, r.failures())
		require.NoError(t, r.drain.Stopped())
	})
}

// Where there is less time than the schedule asks for, it goes to the buckets by what their pods
// need: the longest grace period, at most the bucket's seconds, and these for a pod without one.
func TestNeedsOfTheBuckets(t *testing.T) {
	for name, test := range map[string]struct {
		pods []*v1.Pod
		want []int64 // of 20 and 10 s, of which there are 12
	}{
		"more than there is":     {twoPods(), []int64{2, 10}},
		"no grace period":        {[]*v1.Pod{pod("web", 0, 60), pod("etcd", high, -1)}, []int64{2, 10}},
		"less":                   {[]*v1.Pod{pod("web", 0, 60), pod("etcd", high, 3)}, []int64{9, 3}},
		"the longest of several": {[]*v1.Pod{pod("web", 0, 60), pod("etcd", high, 3), pod("cni", high, 5)}, []int64{7, 5}},
		"none":                   {[]*v1.Pod{pod("web", 0, 60)}, []int64{12, 0}},
		"little":                 {[]*v1.Pod{pod("web", 0, 1), pod("etcd", high, 1)}, []int64{1, 8}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, test.pods, func(t *testing.T, r *rig) {
				r.request.Table.HostEnd = r.began.Add(12 * time.Second)
				r.run()
				var got []int64
				for _, b := range r.planned[0].Schedule() {
					got = append(got, b.Seconds)
				}
				require.Equal(t, test.want, got)
			})
		})
	}
}

// A drain that overtakes another counts what a pod that was signalled has left, and nothing for
// buckets that are done. A late pod of one of these counts for the next.
func TestNeedsOfADrainThatOvertakes(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, r *rig) {
		r.start()
		advance(15 * time.Second)
		first := r.drain
		first.Stop(errStopped)
		r.request.Number, r.request.Table.Received, r.request.Table.HostEnd = 2, time.Now(), time.Now().Add(20*time.Second)
		ended := r.start()
		advance(0)
		require.Equal(t, int64(7), r.planned[1].Schedule()[0].Seconds, "the 5 s that web has left, and 2 that nobody needs")
		require.Equal(t, int64(10), r.planned[1].Schedule()[1].Seconds)
		<-ended
		require.Equal(t, []call1{{"web", 0, 20}, {"etcd", 20 * time.Second, 12}}, r.killed(), "web is not killed again")
		require.ErrorIs(t, first.Stopped(), errStopped)
	})
	inBubble(t, []*v1.Pod{pod("late", 0, 7)}, func(t *testing.T, r *rig) {
		r.request.Table.Done, r.request.Table.HostEnd = 1, r.began.Add(9*time.Second)
		r.run()
		require.Equal(t, plan.Schedule{{Priority: 0, Seconds: 0}, {Priority: high, Seconds: 7}}, r.planned[0].Schedule())
		require.Equal(t, []call1{{"late", 0, 7}}, r.killed())
		require.NotContains(t, r.heard(), "0s begins 0")
	})
}

// Whom a drain means to kill is on record before the first kill, which waits for the disk, but no
// longer than 100 ms.
func TestFirstKillWaitsForTheRecord(t *testing.T) {
	for name, test := range map[string]struct {
		takes, killed time.Duration
		errs          int
	}{
		"a disk":       {60 * time.Millisecond, 60 * time.Millisecond, 0},
		"a slow disk":  {time.Second, 100 * time.Millisecond, 1},
		"a hung disk":  {time.Hour, 100 * time.Millisecond, 1},
		"a quick disk": {0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, twoPods(), func(t *testing.T, r *rig) {
				stored, complete := call.NewFuture[struct{}]()
				r.record = stored
				time.AfterFunc(test.takes, func() { complete(struct{}{}, nil) })
				r.run()
				require.Equal(t, test.killed, r.killed()[0].at)
				require.Len(t, r.failures(), test.errs)
			})
		})
	}
}

// The first list comes after the timetable was made. Whom it names is on record before the first
// kill all the same, and the timetable is made for them.
func TestFirstListIsLate(t *testing.T) {
	inBubble(t, []*v1.Pod{pod("web", 0, 60), pod("etcd", high, 3)}, func(t *testing.T, r *rig) {
		r.lists(func(call int) ([]*v1.Pod, error) {
			if call < 10 {
				return nil, errNotReady
			}
			return r.currentPods(), nil
		})
		r.request.Table.HostEnd = r.began.Add(20 * time.Second)
		r.ends["web"] = 0
		r.run()
		heard := r.heard()
		require.Equal(t, []string{"0s planned 0", "1s begins 0"}, []string{"0s" + heard[0][2:], heard[1]})
		require.Contains(t, heard[2], "planned 2")
		require.Contains(t, heard[3], "signalled web")
		require.Equal(t, int64(10), r.planned[0].Schedule()[0].Seconds, "of 20 s, by the schedule")
		require.Equal(t, int64(17), r.planned[1].Schedule()[0].Seconds, "by the needs")
	})
}

// A pod that is listed when the buckets are done is killed before the drain ends, with what is left
// until the end of the last bucket.
func TestPodThatIsListedAtTheEnd(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, r *rig) {
		r.ends["web"], r.ends["etcd"] = 5*time.Second, 2*time.Second
		ended := r.start()
		advance(6 * time.Second)
		r.setPods(append(twoPods(), pod("late", 0, 60))...)
		require.True(t, <-ended)
		require.Equal(t, call1{"late", 7 * time.Second, 23}, r.killed()[2])
		require.Equal(t, 30*time.Second, time.Since(r.began))
	})
}

// Nobody is killed at the end of a drain that was stopped, or whose time is over.
func TestNobodyIsKilledAfterTheEnd(t *testing.T) {
	for name, test := range map[string]struct {
		takes  time.Duration // etcd
		stop   bool
		killed int
	}{
		"there is time":        {5 * time.Second, false, 3},
		"it was stopped":       {5 * time.Second, true, 2},
		"the time is over":     {time.Hour, false, 2},
		"stopped, and is over": {time.Hour, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, twoPods(), func(t *testing.T, r *rig) {
				r.request.Table.HostEnd = r.began.Add(30 * time.Second)
				r.ends["web"], r.ends["etcd"] = 0, test.takes
				ended := r.start()
				advance(4 * time.Second)
				r.setPods(append(twoPods(), pod("late", 0, 60))...)
				if test.stop {
					r.drain.Stop(errStopped)
				}
				<-ended
				require.Len(t, r.killed(), test.killed)
			})
		})
	}
}

// A drain that is stopped in a bucket does not end it: the next drain does.
func TestStoppedDrainLeavesItsBucket(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, r *rig) {
		ended := r.start()
		advance(time.Second)
		r.drain.Stop(errStopped)
		require.True(t, <-ended)
		require.Equal(t, []string{"0s planned 2", "0s begins 0", "0s signalled web", "20s ended web"}, r.heard(), "web keeps its time")
	})
}

// A pod that is just being taken out of its services when the drain is stopped is not killed.
func TestStoppedWhileAPodIsMarked(t *testing.T) {
	inBubble(t, []*v1.Pod{pod("web", 0, 60)}, func(t *testing.T, r *rig) {
		box := outbox.New(outbox.Options{MarkNotReady: func(ctx context.Context, _ *v1.Pod) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}})
		leave := box.Open(r.ctx)
		t.Cleanup(func() { leave() })
		r.options.Outbox, r.options.Marks = box, true
		r.request.Table.Options = plan.Options{Hooks: plan.Hooks{Readiness: true}}
		ended := r.start()
		advance(time.Millisecond)
		r.drain.Stop(errStopped)
		<-ended
		require.Empty(t, r.killed())
	})
}

// steps sets the steps before the first bucket, each of which takes 700 ms.
func steps(r *rig, called *[]string) {
	step := func(name string) func(context.Context) error {
		return func(ctx context.Context) error {
			*called = append(*called, name)
			select {
			case <-time.After(700 * time.Millisecond):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	r.options.Prepare, r.options.Hold = step("Prepare"), step("Hold")
	box := outbox.New(outbox.Options{Publish: func(ctx context.Context, _ any) error {
		select {
		case <-time.After(1800 * time.Millisecond):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}})
	r.options.Outbox = box
	leave := box.Open(r.ctx)
	r.t.Cleanup(func() { leave() })
	r.request.Table.Options.Hooks = plan.Hooks{Prepare: true, Hold: true, Publish: true}
	r.request.Publish = func() *outbox.Publication { return box.Publish("down") }
}

// The steps before the first bucket are passed one after the other. One that a stop has cut short
// is not passed, so that the next drain does it; one that was passed before is not done again.
func TestStepsBeforeTheFirstBucket(t *testing.T) {
	for name, test := range map[string]struct {
		stop   time.Duration // 0: not at all
		before drain.Step    // the steps before it were passed
		called []string
		passed []string
	}{
		"all":                   {0, drain.Prepared, []string{"Prepare", "Hold"}, []string{"700ms passed prepared", "1.4s passed held", "1.8s passed published"}},
		"stopped in Prepare":    {600 * time.Millisecond, drain.Prepared, []string{"Prepare"}, nil},
		"stopped in Hold":       {1300 * time.Millisecond, drain.Prepared, []string{"Prepare", "Hold"}, []string{"700ms passed prepared"}},
		"stopped in publishing": {1700 * time.Millisecond, drain.Prepared, []string{"Prepare", "Hold"}, []string{"700ms passed prepared", "1.4s passed held"}},
		"prepared before":       {0, drain.Held, []string{"Hold"}, []string{"700ms passed held", "1.8s passed published"}},
		"held before":           {0, drain.Published, nil, []string{"1.8s passed published"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, r *rig) {
				var called, passed []string
				steps(r, &called)
				r.request.Table.Prepared, r.request.Table.Held = test.before > drain.Prepared, test.before > drain.Held
				ended := r.start()
				if test.stop > 0 {
					advance(test.stop)
					r.drain.Stop(errStopped)
				}
				<-ended
				for _, told := range r.heard() {
					if len(told) > 0 && told[len(told)-1] == 'd' { // prepared, held, published
						passed = append(passed, told)
					}
				}
				require.Equal(t, test.called, called)
				require.Equal(t, test.passed, passed)
				require.Empty(t, r.failures(), "a stop is no failure")
			})
		})
	}
}

// The calls of the killer end when the host goes on, also those of a drain that was stopped. Those
// of a drain that was cancelled go on, and their pods are awaited.
func TestCallsOfTheKillerEndWithTheHost(t *testing.T) {
	for name, test := range map[string]struct {
		stop  func(*drain.Drain)
		ended string // of web; "": it is given up
	}{
		"not stopped": {func(*drain.Drain) {}, "25s gave up web"},
		"stopped":     {func(d *drain.Drain) { d.Stop(errStopped) }, "25s gave up web"},
		"cancelled":   {func(d *drain.Drain) { d.Cancel(errStopped) }, "1m0s ended web"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, []*v1.Pod{pod("web", 0, 60)}, func(t *testing.T, r *rig) {
				r.request.Table.Schedule = plan.Schedule{{Priority: 0, Seconds: 60}}
				r.request.Table.HostEnd = r.began.Add(25500 * time.Millisecond)
				r.ends["web"] = time.Minute
				ended := r.start()
				advance(5 * time.Second)
				test.stop(r.drain)
				<-ended
				r.drain.AwaitStragglers(time.Second)
				require.Contains(t, r.heard(), test.ended)
			})
		})
	}
}

// A drain that takes up the timetable of a former agent goes on with its buckets and their ends. It
// does not hold again.
func TestResumedTimetable(t *testing.T) {
	inBubble(t, []*v1.Pod{pod("web", 0, 4), pod("etcd", high, 5)}, func(t *testing.T, r *rig) {
		received := r.began.Add(-25 * time.Second)
		table := timetable.New(timetable.Request{Schedule: r.request.Table.Schedule, Received: received})
		r.request.Resumed, r.request.Table.Done, r.request.Table.Received = &table, 1, received
		r.options.Hold = func(context.Context) error { panic("of Hold") }
		r.run()
		require.ElementsMatch(t, []call1{{"web", 0, 4}, {"etcd", 0, 5}}, r.killed())
		require.Equal(t, []string{"0s planned 2", "0s begins 1"}, r.heard()[:2])
		require.Len(t, r.planned, 1, "it stays as it is")
		require.True(t, table.H().Equal(r.planned[0].H()))
	})
}

// What the finished buckets of a former agent have left unused is not on record. A bucket has all
// that there is until its end.
func TestResumedTimetableRollsOver(t *testing.T) {
	inBubble(t, []*v1.Pod{pod("etcd", high, 60)}, func(t *testing.T, r *rig) {
		received := r.began.Add(-5 * time.Second)
		table := timetable.New(timetable.Request{Schedule: r.request.Table.Schedule, Received: received})
		r.request.Resumed, r.request.Table.Done, r.request.Table.Received = &table, 1, received
		r.run()
		require.Equal(t, []call1{{"etcd", 0, 25}}, r.killed())
	})
}

// Whom the record has as signalled and not ended is killed in its turn and awaited, although no
// list names it.
func TestPodOnRecordThatIsNotListed(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		account := kills.NewAccount(r.began.Add(-5*time.Second), func(types.UID) *kills.Kill { return nil })
		account.Restore(kills.Restored{Pod: pod("etcd", high, 60), Priority: high})
		account.Restore(kills.Restored{Pod: pod("web", 0, 60), Signalled: true, Seconds: 20, Started: r.began.Add(-5 * time.Second)})
		r.request.Account = account
		r.ends["web"], r.ends["etcd"] = 4*time.Second, 0
		require.Equal(t, 4*time.Second, r.run())
		require.Equal(t, []call1{{"web", 0, 15}, {"etcd", 4 * time.Second, 26}}, r.killed())
	})
}

// Whom the record names is killed before there is a list.
func TestPodOnRecordWithoutAList(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, r *rig) {
		account := kills.NewAccount(r.began, func(types.UID) *kills.Kill { return nil })
		account.Restore(kills.Restored{Pod: pod("web", 0, 60), Signalled: true, Seconds: 20, Started: r.began})
		r.request.Account = account
		r.lists(func(int) ([]*v1.Pod, error) { return nil, errNotReady })
		r.run()
		require.Equal(t, []call1{{"web", 2 * time.Second, 18}}, r.killed(), "two seconds were left to the list")
	})
}

// A bucket waits for the statuses of its pods that have ended. These include a pod that outlives
// its time and ends only while the bucket waits for the status of another one.
func TestBucketWaitsForStatuses(t *testing.T) {
	inBubble(t, []*v1.Pod{pod("slow", 0, 60), pod("quick", 0, 60), pod("etcd", high, 60)}, func(t *testing.T, r *rig) {
		flushes := map[string]time.Duration{"quick": 600 * time.Millisecond, "slow": 600 * time.Millisecond}
		box := outbox.New(outbox.Options{FlushPod: func(_ context.Context, pod *v1.Pod) error {
			<-time.After(flushes[pod.Name])
			return nil
		}})
		leave := box.Open(r.ctx)
		t.Cleanup(func() { leave() })
		r.options.Outbox, r.options.Flushes = box, true
		r.request.Table.Options = plan.Options{Hooks: plan.Hooks{Statuses: true}, FlushReserve: 4 * time.Second}
		r.ends["quick"], r.ends["slow"], r.ends["etcd"] = 21900*time.Millisecond, 22300*time.Millisecond, 0
		r.drain = drain.New(r.ctx, r.options, r.request, owing{r, box})
		r.drain.Run()
		require.Equal(t, 22900*time.Millisecond, r.killed()[2].at, "slow has ended and its status is acknowledged")
	})
}

// The wait for all statuses has the longest reserve of a bucket, though the last bucket has no pods, and
// none, and though the bucket before it has waited in vain.
func TestReserveOfABucketBeforeTheLast(t *testing.T) {
	inBubble(t, []*v1.Pod{pod("web", 0, 60)}, func(t *testing.T, r *rig) {
		box := outbox.New(outbox.Options{FlushPod: func(ctx context.Context, _ *v1.Pod) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}})
		leave := box.Open(r.ctx)
		t.Cleanup(func() { leave() })
		r.options.Outbox, r.options.Flushes = box, true
		r.request.Table.Options = plan.Options{Hooks: plan.Hooks{Statuses: true}, FlushReserve: 4 * time.Second}
		r.request.Table.HostEnd = r.began.Add(35 * time.Second)
		r.ends["web"] = time.Second
		r.drain = drain.New(r.ctx, r.options, r.request, owing{r, box})
		r.drain.Run()
		require.Equal(t, 9*time.Second, time.Since(r.began))
	})
}

// owing is a listener that owes the final status of each pod that ends.
type owing struct {
	*rig

	box *outbox.Outbox
}

func (o owing) Ended(k *kills.Kill) {
	o.rig.Ended(k)
	o.box.Owe(k.Pod(), k.Pod, k.Acknowledge)
}

// Without a schedule there is one bucket that lasts as long as the longest grace period of a pod,
// and for the default where none has one.
func TestScheduleOf(t *testing.T) {
	require.Equal(t, plan.Schedule{{Seconds: 30}}, drain.ScheduleOf(nil))
	require.Equal(t, plan.Schedule{{Seconds: 30}}, drain.ScheduleOf([]*v1.Pod{nil, pod("a", 0, 3), pod("b", 0, -1)}))
	require.Equal(t, plan.Schedule{{Seconds: 90}}, drain.ScheduleOf([]*v1.Pod{pod("a", 0, 3), pod("b", high, 90)}))
	inBubble(t, []*v1.Pod{pod("a", 0, 3), pod("b", high, 90)}, func(t *testing.T, r *rig) {
		r.request.Table.Schedule = nil
		require.Equal(t, 90*time.Second, r.run())
		require.Equal(t, map[string]int64{"a": 3, "b": 90}, granted(r.killed()))
	})
}
