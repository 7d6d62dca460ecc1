//go:build go1.25

package shutdown_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/internal/seeds"
	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// difference is a class of differences from the kubelet: the first cell of its row in the table of
// internal/fork/README.md.
type difference string

const (
	limitBelowSum     difference = "logind's limit below the requested delay"
	classIgnored      difference = "static pod with a class name only"
	unusedTimeLost    difference = "unused time of a bucket"
	unmountsShareTime difference = "unmount wait"
	failureOnlyLogged difference = "kill that fails in a shutdown"
	killTimesOut      difference = "kill that exceeds its timeout in a shutdown"
	listReadOnce      difference = "pod that is listed for the first time during a drain"
	lateEndNotAwaited difference = "pod that outlasts its bucket"
	lockOutlastsLimit difference = "end of the wait for the last bucket"
)

// drainDifferences returns the classes of the differences that occur in a fork of the kubelet (inFork) or in another agent. A
// fork requests no time for unmounts, and kills with the kubelet's function.
func drainDifferences(inFork bool) map[difference]bool {
	differs := map[difference]bool{
		limitBelowSum: true, classIgnored: true, unusedTimeLost: true, failureOnlyLogged: true, listReadOnce: true, lateEndNotAwaited: true, lockOutlastsLimit: true,
	}
	if !inFork {
		differs[unmountsShareTime], differs[killTimesOut] = true, true
	}
	return differs
}

const (
	never      time.Duration = math.MaxInt64 / 4
	simTimeout               = 10 * time.Second // the longest real time of one drain, whose own time is virtual
)

// inSeconds converts whole seconds to a duration.
func inSeconds(seconds int64) time.Duration { return time.Duration(seconds) * time.Second }

// TestDrainMatchesTheKubeletsModel compares random drains with a model of the kubelet's drain. They may differ only as the table of
// internal/fork/README.md says: a class (type difference) is named after a row of it. Every class occurs in some drain, so that none
// is in the table for nothing. A drain is played as in a fork of the kubelet (InFork), or as in another agent, which has more classes.
//
//	KUBEGRACE_SIM_SEEDS=1000000 go test -run TestDrainMatchesTheKubeletsModel -timeout 0 ./shutdown
//	KUBEGRACE_SIM_SEED=4711 go test -run TestDrainMatchesTheKubeletsModel -v ./shutdown # one seed, with its timelines
func TestDrainMatchesTheKubeletsModel(t *testing.T) {
	const enoughSeeds = 5_000 // for each class to occur
	var mu sync.Mutex
	occurs := map[bool]map[difference]int{false: {}, true: {}} // how often each class occurs; by InFork
	played := seeds.Play(t, enoughSeeds, func(t *testing.T, seed uint64) (func() string, error) {
		compared := compareDrains(t, randomDrain(seed))
		mu.Lock()
		defer mu.Unlock()
		for _, class := range compared.classes {
			occurs[compared.in.InFork][class]++
		}
		return compared.String, compared.err()
	})
	for _, inFork := range []bool{false, true} {
		t.Logf("in a fork: %t, differences: %v", inFork, occurs[inFork])
		for class := range drainDifferences(inFork) {
			if played >= enoughSeeds { // fewer, as with KUBEGRACE_SIM_SEED, need not have every class
				require.NotZero(t, occurs[inFork][class], "no seed has a difference of this class, in a fork: %t: %s", inFork, class)
			}
		}
	}
}

// drainComparison compares three timelines of one drain: the kubelet's, that of the kubelet with all differences that
// have a class (adapted), and kubegrace's (ours).
type drainComparison struct {
	in                     drainInput
	kubelet, adapted, ours drainTimeline
	classes                []difference // those without each of which adapted would differ; if there is none, those that alone change the kubelet's timeline
}

// compareDrains drains a node with kubegrace and with models of the kubelet, and finds the classes of the
// differences.
func compareDrains(t *testing.T, in drainInput) *drainComparison {
	t.Helper()
	c := &drainComparison{in: in}
	watchdog := time.AfterFunc(simTimeout, func() { panic(fmt.Sprintf("the drain does not end: %s", c)) })
	defer watchdog.Stop()
	synctest.Test(t, func(t *testing.T) { c.ours = runDrain(t, in).sorted() })
	model := func(differs map[difference]bool) drainTimeline {
		k := kubeletDrain{drainInput: in, differs: differs}
		return k.run().sorted()
	}
	differs := drainDifferences(in.InFork)
	c.kubelet, c.adapted = model(nil), model(differs)
	for class := range differs { // a class is necessary if the model without it has another timeline
		others := maps.Clone(differs)
		delete(others, class)
		if isNecessary := !slices.Equal(model(others), c.adapted); isNecessary {
			c.classes = append(c.classes, class)
		}
	}
	if len(c.classes) == 0 { // more than one class explains the difference alone, or there is none
		for class := range differs {
			if !slices.Equal(model(map[difference]bool{class: true}), c.kubelet) {
				c.classes = append(c.classes, class)
			}
		}
	}
	return c
}

// err returns an error if kubegrace does something else than the model with all classes of differences (adapted). A difference
// from the kubelet then has no class.
func (c *drainComparison) err() error {
	if !slices.Equal(c.kubelet, c.adapted) && len(c.classes) == 0 {
		return errors.New("a difference has no single class")
	}
	for i := range max(len(c.ours), len(c.adapted)) {
		if i >= len(c.ours) || i >= len(c.adapted) || c.ours[i] != c.adapted[i] {
			return fmt.Errorf("a difference has no class: kubegrace %v, the model %v", c.ours[i:min(i+1, len(c.ours))], c.adapted[i:min(i+1, len(c.adapted))])
		}
	}
	return nil
}

// String returns the input and all timelines.
func (c *drainComparison) String() string {
	in, err := json.Marshal(c.in)
	return fmt.Sprintf("%s %v\ndifferences: %q\nthe kubelet:\n%v\nthe kubelet with these differences:\n%v\nkubegrace:\n%v",
		bytes.ReplaceAll(in, []byte(`{"Name"`), []byte("\n{\"Name\"")), err, c.classes, c.kubelet, c.adapted, c.ours)
}

// drainTimeline is what happens in a drain: the kills and ends of pods, and the release of the lock.
type drainTimeline []drainLine

// drainLine is one line of a timeline.
type drainLine struct {
	at   time.Duration
	pod  string // "": the node
	text string
}

// add adds a line. at is the time since the announcement. pod is the name of the pod, or "" for the node.
func (l *drainTimeline) add(at time.Duration, pod, format string, args ...any) {
	*l = append(*l, drainLine{at: at, pod: pod, text: fmt.Sprintf(format, args...)})
}

// sorted sorts the lines by time, then by pod and text.
func (l drainTimeline) sorted() drainTimeline {
	slices.SortFunc(l, func(a, b drainLine) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.pod, b.pod), cmp.Compare(a.text, b.text))
	})
	return l
}

// String returns the lines as a text.
func (l drainTimeline) String() string {
	var text strings.Builder
	for _, line := range l {
		fmt.Fprintf(&text, "%14v %-9s %s\n", line.at, line.pod, line.text)
	}
	return text.String()
}

// drainInput is the input of a drain: a node with its configuration and pods, and a host.
type drainInput struct {
	InFork          bool          // only the kubelet's sum is requested, and the kubelet's function kills
	NoRollOver      bool          // in kubegrace
	Total, Critical int64         // in seconds: of both buckets, and of the one for critical pods
	ByPriority      []drainBucket // the buckets; empty: the two of Total and Critical are used
	Limit           time.Duration // the longest delay that the host grants
	HasVolumes      bool
	Unmounts        time.Duration // how long the volumes of a bucket take
	Pods            []drainPod
}

// drainBucket is an entry of the schedule.
type drainBucket struct {
	Priority int32
	Seconds  int64
}

// drainPod is a pod of the input, and how it ends.
type drainPod struct {
	Name       string
	Priority   *int32
	Class      string // the priority class
	Grace      *int64
	Takes      time.Duration // from the SIGTERM to its exit, unless the grace period is shorter
	Late       time.Duration // from its exit or the SIGKILL to its end
	Fails      int           // how many calls of the killer fail
	FailsAfter time.Duration // how long each of them takes
	ListedAt   time.Duration // when it is listed first, after the announcement; 0: before the shutdown
}

// modelPod is a pod of the model.
type modelPod struct {
	drainPod

	bucket   int
	isPicked bool          // a group has killed it
	calls    int           // how often the killer was called
	killedAt time.Duration // when the first call that does not fail was made
	endsAt   time.Duration // never: every call fails
	doneAt   time.Duration // when the last call returns
}

// wholeSeconds rounds down, but allows for a timer that is up to 100 ms late.
func wholeSeconds(d time.Duration) int64 { return int64(max(d+100*time.Millisecond, 0) / time.Second) }

// drainTable is kubegrace's timetable: the requested delay, shortened to what the host grants.
type drainTable struct {
	pods, unmounts, ends []time.Duration // by bucket
	waitEnd              time.Duration
}

// newTable returns the timetable. If the limit covers the pods' time, the rest of the limit goes to 100 ms of the margin,
// then to the unmounts, then to the other 400 ms of the margin, and last to the floor, the 2 s for containers that have
// used up their grace period. Otherwise the buckets that have pods are cut in proportion.
func (k *kubeletDrain) newTable(sum time.Duration) (t drainTable) {
	n := len(k.schedule)
	t.pods, t.unmounts, t.ends = make([]time.Duration, n), make([]time.Duration, n), make([]time.Duration, n)
	var unmounts time.Duration
	for i, bucket := range k.schedule {
		if t.pods[i] = inSeconds(bucket.Seconds); bucket.Seconds > 0 && k.HasVolumes {
			t.unmounts[i] = 2 * time.Second
			unmounts += t.unmounts[i]
		}
	}
	requested := sum + unmounts + 2500*time.Millisecond // floor: 2 s, margin: 500 ms
	if k.InFork {
		requested = sum
	}
	end := min(requested, k.Limit)
	var floor, margin time.Duration
	left := end - sum
	take := func(most time.Duration) time.Duration { // takes at most this of what is left
		taken := max(min(most, left), 0)
		left -= taken
		return taken
	}
	if coversPods := left >= 0; coversPods {
		margin = take(100 * time.Millisecond)
		cut(t.unmounts, take(unmounts))
		margin += take(400 * time.Millisecond)
		floor = take(2 * time.Second)
	} else {
		clear(t.unmounts)
		k.cutPods(t.pods, end)
	}
	t.waitEnd = max(end-max(margin, 100*time.Millisecond), 0)
	end -= floor + margin
	for i := range slices.Backward(t.ends) {
		t.ends[i] = end
		end -= t.pods[i] + t.unmounts[i]
	}
	return t
}

// cutPods cuts the buckets that have pods in proportion, so that they fit into the time until end. The buckets without pods
// share what is left.
func (k *kubeletDrain) cutPods(pods []time.Duration, end time.Duration) {
	used, empty := slices.Clone(pods), slices.Clone(pods)
	var sum time.Duration
	for i := range pods {
		if slices.ContainsFunc(k.pods, func(p *modelPod) bool { return p.bucket == i && p.ListedAt == 0 }) {
			empty[i] = 0
			sum += used[i]
		} else {
			used[i] = 0
		}
	}
	cut(used, min(end, sum))
	cut(empty, max(end-sum, 0))
	for i := range pods {
		pods[i] = used[i] + empty[i]
	}
}

// cut shortens all parts in proportion so that their sum is the limit, unless it is below the limit already.
func cut(parts []time.Duration, limit time.Duration) {
	var sum, before, used time.Duration
	for _, part := range parts {
		sum += part
	}
	for i, part := range parts {
		if before += part; sum > limit {
			hi, lo := bits.Mul64(uint64(limit), uint64(before)) // until = limit * before / sum, without an overflow
			until, _ := bits.Div64(hi, lo, uint64(sum))
			parts[i], used = time.Duration(until)-used, time.Duration(until)
		}
	}
}

// isTooLate reports whether a line comes from a kill that would begin after the release of the lock. Such a kill is not made.
func (k *kubeletDrain) isTooLate(l drainLine, released time.Duration) bool {
	if l.text != "ended" {
		return l.at > released
	}
	return slices.ContainsFunc(k.pods, func(p *modelPod) bool { return p.Name == l.pod && p.killedAt > released })
}

// randomDrain returns a random input, always the same one for a seed.
func randomDrain(seed uint64) drainInput {
	rng := rand.New(rand.NewPCG(seed, 42)) //nolint:gosec // it must be reproducible
	oneIn := func(n int) bool { return rng.IntN(n) == 0 }
	upTo := func(limit time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(limit))) }
	// The configuration: half of the seeds have Total and Critical, the others have ByPriority.
	in := drainInput{InFork: oneIn(2), NoRollOver: oneIn(3), HasVolumes: oneIn(3)}
	if in.HasVolumes {
		in.Unmounts = upTo(5 * time.Second)
	}
	var sum int64
	if oneIn(2) {
		in.Total = 1 + rng.Int64N(40)
		in.Critical, sum = rng.Int64N(in.Total+1), in.Total
	} else {
		for _, i := range rng.Perm(7)[:1+rng.IntN(4)] {
			bucket := drainBucket{Priority: int32(i-2) * 100, Seconds: rng.Int64N(15)}
			if i == 6 {
				bucket.Priority = criticalPriority
			}
			in.ByPriority, sum = append(in.ByPriority, bucket), sum+bucket.Seconds
		}
		if sum == 0 {
			in.ByPriority[0].Seconds, sum = 5, 5
		}
	}
	// The host's limit. None is less than 100 ms below a whole second, because it would count as that second.
	switch rng.IntN(6) {
	case 0:
		in.Limit = inSeconds(sum)
	case 1:
		in.Limit = inSeconds(sum+rng.Int64N(10)) + upTo(900*time.Millisecond)
	case 2, 3:
		in.Limit = inSeconds(1+rng.Int64N(sum)) + upTo(900*time.Millisecond)
	default:
		in.Limit = time.Hour
	}
	// The pods: their priorities and grace periods, and how they end.
	for i := range 1 + rng.IntN(6) {
		p := drainPod{Name: "pod" + strconv.Itoa(i), Takes: upTo(20 * time.Second)}
		if oneIn(4) {
			p.Takes = time.Hour
		}
		switch rng.IntN(6) {
		case 0:
		case 1:
			p.Class = "system-node-critical"
		case 2, 3:
			p.Priority = ptr.To(criticalPriority)
		default:
			p.Priority = ptr.To(rng.Int32N(9)*100 - 350)
		}
		if !oneIn(5) {
			p.Grace = ptr.To(rng.Int64N(40))
		}
		switch rng.IntN(10) {
		case 0, 1:
			p.Late = upTo(4 * time.Second)
		case 2:
			p.Late = upTo(40 * time.Second)
		case 3:
			p.Fails, p.FailsAfter = 1+rng.IntN(3), upTo(8*time.Second)
		case 4:
			p.ListedAt = upTo(30 * time.Second)
		}
		in.Pods = append(in.Pods, p)
	}
	return in
}

// pod returns the pod of the API.
func (p drainPod) pod() *v1.Pod {
	pod := shutdowntest.Pod(p.Name, regularPriority, noGrace)
	pod.Spec.Priority, pod.Spec.PriorityClassName, pod.Spec.TerminationGracePeriodSeconds = p.Priority, p.Class, p.Grace
	return pod
}

// runDrain drains the node with kubegrace's manager, and returns the timeline.
func runDrain(t *testing.T, in drainInput) drainTimeline {
	w := &drainWorld{drainInput: in, pods: map[string]*worldPod{}}
	for _, p := range in.Pods {
		w.pods[p.Name] = &worldPod{drainPod: p, pod: p.pod(), ended: make(chan struct{})}
	}
	host := &shutdowntest.Host{Limit: in.Limit}
	options := shutdown.Options{
		Config:   config(inSeconds(in.Total), inSeconds(in.Critical)),
		ListPods: shutdown.ListPodsFunc(w.list, nil),
		Killer:   w,
		Source:   host,
		Plan:     plan.Options{NoRollOver: in.NoRollOver},
	}
	sum := in.Total
	for _, bucket := range in.ByPriority {
		options.Config.ShutdownGracePeriodByPodPriority = append(options.Config.ShutdownGracePeriodByPodPriority, priorityPeriod(bucket.Priority, bucket.Seconds))
		sum += bucket.Seconds
	}
	if in.InFork {
		options.Plan.Limit = inSeconds(sum)
	}
	if in.HasVolumes {
		options.Volumes = volumes(func(ctx context.Context, _ []*v1.Pod) error { return times.Sleep(ctx, in.Unmounts) })
	}
	m, err := shutdown.NewManager(options)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	<-m.Ready()
	<-time.After(time.Minute) // a new agent would read an empty list once more
	w.mu.Lock()
	w.began = time.Now()
	w.mu.Unlock()
	host.Announce(source.Event{})
	<-time.After(time.Hour)
	if released, ok := host.Released(); ok {
		w.mu.Lock()
		w.lines.add(released.Sub(w.began), "", "lock released")
		w.mu.Unlock()
	}
	<-time.After(time.Hour) // until pods that take an hour have ended
	stop()
	requireEnded(t, <-ended)
	require.NoError(t, host.Err())
	return w.lines
}

// drainWorld has the pods of a node, and is their killer.
type drainWorld struct {
	drainInput

	pods map[string]*worldPod

	mu    sync.Mutex // guards the fields below, and those of the pods
	began time.Time  // of the shutdown; zero: it has not been announced
	lines drainTimeline
}

// worldPod is a pod of a drainWorld.
type worldPod struct {
	drainPod

	pod      *v1.Pod
	calls    int
	isKilled bool // a call has not failed
	ended    chan struct{}
}

// list returns the pods that are listed now.
func (w *drainWorld) list() (pods []*v1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.Pods {
		isAnnounced := !w.began.IsZero()
		if p.ListedAt == 0 || isAnnounced && time.Since(w.began) >= p.ListedAt {
			pods = append(pods, w.pods[p.Name].pod)
		}
	}
	return pods
}

// errDrainKill is the error of the calls of the killer that fail.
var errDrainKill = errors.New("the killer fails")

// KillPod kills a pod. The first calls fail, as many as the pod's Fails says. If InFork is set, KillPod returns an error at
// the timeout of the kubelet's killPodNow (1.5 times the grace period, at least 10 s), and the pod ends all the same.
func (w *drainWorld) KillPod(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	p, grace := w.pods[pod.Name], *req.GracePeriodSeconds
	w.mu.Lock()
	w.lines.add(time.Since(w.began), pod.Name, "killed with %d s", grace)
	p.calls++
	fails := p.calls <= p.Fails
	if !fails && !p.isKilled {
		p.isKilled = true
		time.AfterFunc(min(p.Takes, inSeconds(grace))+p.Late, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.lines.add(time.Since(w.began), pod.Name, "ended")
			close(p.ended)
		})
	}
	w.mu.Unlock()
	if fails {
		<-time.After(p.FailsAfter)
		return shutdown.KillResult{}, errDrainKill
	}
	timeout := never
	if w.InFork {
		timeout = inSeconds(max(grace+grace/2, 10))
	}
	select {
	case <-p.ended:
		return shutdown.KillResult{}, nil
	case <-time.After(timeout):
		return shutdown.KillResult{}, errors.New("timeout waiting to kill pod")
	case <-ctx.Done():
		return shutdown.KillResult{}, context.Cause(ctx)
	}
}
