package timetable_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// kubeletKills are the overrides of the kubelet's killPods: the seconds of the group, or the
// pod's own grace period if that is not longer. It passes a negative one on, of which the pod
// worker makes 1 s as of 0.
func kubeletKills(s plan.Schedule, pods []*v1.Pod) []int64 {
	seconds := []int64{}
	for _, pod := range pods {
		override := s[newModel(timetable.Request{Schedule: s}, nil, true).bucketOf(pod)].Seconds
		if own := pod.Spec.TerminationGracePeriodSeconds; own != nil && *own <= override {
			override = max(*own, 0)
		}
		seconds = append(seconds, override)
	}
	return seconds
}

// allButPrepare has all hooks but Prepare, whose time the pods do not get back.
func allButPrepare() plan.Hooks {
	hooks := allHooks()
	hooks.Hold = true
	return hooks
}

// The sum of the kubelet's groups, as logind may grant it exactly, gives the kubelet's own
// seconds: without roll-over and hooks, and with them all but Prepare.
func TestModelIsTheKubelets(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 0))
	for range 3000 {
		c := pickCase(r.IntN)
		limit := c.request.Schedule.Total() + of(r.IntN, 0, 0, time.Duration(r.IntN(40))*second)
		want := kubeletKills(c.request.Schedule, c.pods)
		for _, o := range []plan.Options{{NoRollOver: true}, {NoRollOver: true, Hooks: allButPrepare()}} {
			request := timetable.Request{Received: received(), HostEnd: after(limit), Schedule: c.request.Schedule, Options: o, Needs: c.request.Schedule.Needs(c.pods, o)}
			code := timetable.New(request)
			require.Equal(t, want, grantedBy(code.Plan(c.pods, o), c.pods), c)
			require.Equal(t, want, newModel(request, c.pods, true).planned(c.pods).granted, c)
			o.NoRollOver = false
			for i, seconds := range grantedBy(code.Plan(c.pods, o), c.pods) {
				require.GreaterOrEqual(t, seconds, want[i], c)
			}
		}
		c.likeKubelet(t, r.IntN, limit)
	}
}

// likeKubelet drains by groups as the kubelet does, pods ending at any time, without roll-over
// and hooks: each group starts when the one before has ended or used up its seconds.
func (c modelCase) likeKubelet(t *testing.T, d draw, limit time.Duration) {
	t.Helper()
	code := timetable.New(timetable.Request{Received: received(), HostEnd: after(limit), Schedule: c.request.Schedule, Options: plan.Options{NoRollOver: true}})
	want, now := kubeletKills(c.request.Schedule, c.pods), received()
	for i, group := range c.request.Schedule {
		w, found := code.Window(i, now, 0), false
		for k, pod := range c.pods {
			if c.request.Schedule.Index(*pod.Spec.Priority) == i {
				found = true
				require.Equal(t, want[k], w.Seconds(pod, now), c)
			}
		}
		if found {
			require.Equal(t, times.Earlier(now.Add(time.Duration(group.Seconds)*second), code.H()), w.KillsEnd(now), c)
			now = times.Earlier(now.Add(time.Duration(d(int(group.Seconds*1e9+1)))), code.H())
		}
	}
}

// The examples of the design: the limit, the schedule, the seconds.
func TestModelExamples(t *testing.T) {
	for _, c := range []struct {
		limit           time.Duration
		low, high       int64
		wantLow, wantHi int64
	}{{30 * second, 20, 10, 20, 10}, {5 * second, 0, 5, 0, 5}, {5 * second, 20, 10, 0, 5}} {
		for _, hooks := range []plan.Hooks{{}, allButPrepare()} {
			t.Run(fmt.Sprint(c.limit, c.low, c.high, hooks), func(t *testing.T) {
				r := timetable.Request{Received: received(), HostEnd: after(c.limit), Schedule: buckets(c.low, c.high), Options: plan.Options{Hooks: hooks}}
				pods := []*v1.Pod{podOf(0, 100), podOf(1000, 100)}
				r.Needs = r.Schedule.Needs(pods, r.Options)
				code := timetable.New(r)
				require.Equal(t, buckets(c.wantLow, c.wantHi), code.Schedule())
				require.Equal(t, []int64{c.wantLow, c.wantHi}, newModel(r, pods, true).seconds)
				require.Equal(t, []int64{c.wantLow, c.wantHi}, grantedBy(code.Plan(pods, r.Options), pods))
			})
		}
	}
}

// The cases of the kubelet's own manager, with the limit that they have or raise it to:
// without roll-over and hooks, and with all hooks but Prepare.
func TestModelManagerVectors(t *testing.T) {
	data, err := os.ReadFile("../../testdata/manager.yaml")
	require.NoError(t, err)
	var file struct {
		Manager struct {
			Pods  map[string][]string
			Cases []struct {
				Desc                   string
				Total, Critical, After int
				Kills                  map[string]int64
			}
		} `json:"nodeshutdown_manager"`
	}
	require.NoError(t, yaml.Unmarshal(data, &file))
	require.NotEmpty(t, file.Manager.Cases)
	for _, c := range file.Manager.Cases {
		config := plan.Config{
			ShutdownGracePeriod:             metav1.Duration{Duration: time.Duration(c.Total) * second},
			ShutdownGracePeriodCriticalPods: metav1.Duration{Duration: time.Duration(c.Critical) * second},
		}
		var pods []*v1.Pod
		var want []int64
		for name, seconds := range c.Kills {
			pods, want = append(pods, podOfWords(t, file.Manager.Pods[name])), append(want, seconds)
		}
		for _, o := range []plan.Options{{NoRollOver: true}, {Hooks: allButPrepare()}} {
			t.Run(fmt.Sprint(c.Desc, o.NoRollOver), func(t *testing.T) {
				r := timetable.Request{Received: received(), HostEnd: after(time.Duration(c.After) * second), Schedule: config.Schedule(true), Options: o}
				r.Needs = r.Schedule.Needs(pods, o)
				code := timetable.New(r)
				require.Equal(t, want, grantedBy(code.Plan(pods, o), pods))
				require.Equal(t, want, newModel(r, pods, true).planned(pods).granted)
				require.Equal(t, want, kubeletKills(r.Schedule, pods))
			})
		}
	}
}

// podOfWords makes a pod of the words of the vectors, such as "prio 0" and "tgps nil"; none
// is a pod without both.
func podOfWords(t *testing.T, words []string) *v1.Pod {
	t.Helper()
	p := podOf(0)
	for _, word := range words {
		key, value, _ := strings.Cut(word, " ")
		number, err := strconv.ParseInt(value, 10, 64)
		switch {
		case value == "nil":
			continue
		case key == "prio":
			*p.Spec.Priority = int32(number)
		case key == "tgps":
			p.Spec.TerminationGracePeriodSeconds = &number
		}
		require.NoError(t, err)
	}
	return p
}
