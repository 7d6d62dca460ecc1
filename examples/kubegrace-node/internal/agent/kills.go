package agent

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/view"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// kills records which pods there are, and how far their stops are. All that the agent shows about pods comes
// from it.
type kills struct {
	schedule plan.Schedule // its buckets decide the order of the pods

	mu    sync.Mutex          // guards what follows; never held while anything waits
	last  []*v1.Pod           // the runtime's last complete list
	kills map[types.UID]*kill // the pods that were told to stop, by their UID
}

// kill is the stop of one pod.
type kill struct {
	pod          *v1.Pod
	granted      int64     // the pod's grace period in seconds
	began, ended time.Time // ended is zero while the stop is under way
	err          error     // why the stop has failed
}

// newKills makes empty kills, whose order of pods is by the buckets of schedule.
func newKills(schedule plan.Schedule) *kills {
	return &kills{schedule: schedule, kills: map[types.UID]*kill{}}
}

// listed replaces the list of pods.
func (k *kills) listed(pods []*v1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = pods
}

// begin records that a pod is told to stop. If its stop is under way, nothing changes. If its stop has failed,
// it is under way again, with its first beginning.
func (k *kills) begin(pod *v1.Pod, granted int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if existing := k.kills[pod.UID]; existing != nil && (existing.ended.IsZero() || existing.err != nil) {
		existing.ended, existing.err = time.Time{}, nil
		return
	}
	k.kills[pod.UID] = &kill{pod: pod, granted: granted, began: time.Now()}
}

// end records that the stop of a pod has ended; with an error, that it has failed.
func (k *kills) end(pod *v1.Pod, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if existing := k.kills[pod.UID]; existing != nil {
		existing.ended, existing.err = time.Now(), err
	}
}

// forgetEnded removes the pods whose stop has ended, when a shutdown is over and the agent stays.
func (k *kills) forgetEnded() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for uid, kill := range k.kills {
		if !kill.ended.IsZero() {
			k.last = slices.DeleteFunc(slices.Clone(k.last), func(pod *v1.Pod) bool { return pod.UID == uid })
			delete(k.kills, uid)
		}
	}
}

// underWay returns the names of the pods that are being stopped, as namespace/name.
func (k *kills) underWay() (names []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, kill := range k.kills {
		if kill.ended.IsZero() {
			names = append(names, kill.pod.Namespace+"/"+kill.pod.Name)
		}
	}
	slices.Sort(names)
	return names
}

// all returns all pods in the order in which they stop, and by UID the stops of those that were told to stop.
// A pod that the runtime no longer lists is included if it was told to stop.
func (k *kills) all() ([]*v1.Pod, map[types.UID]kill) {
	k.mu.Lock()
	defer k.mu.Unlock()
	pods, stops := slices.Clone(k.last), map[types.UID]kill{}
	for uid, kill := range k.kills {
		stops[uid] = *kill
		if !slices.ContainsFunc(pods, func(pod *v1.Pod) bool { return pod.UID == uid }) {
			pods = append(pods, kill.pod)
		}
	}
	k.sort(pods)
	return pods, stops
}

// sort sorts pods in the order in which they stop: by bucket, and by priority in a bucket.
func (k *kills) sort(pods []*v1.Pod) {
	slices.SortStableFunc(pods, func(a, b *v1.Pod) int {
		return cmp.Or(cmp.Compare(k.bucketOf(a), k.bucketOf(b)), cmp.Compare(priorityOf(a), priorityOf(b)))
	})
}

// priorityOf returns the priority of a pod as a plan sees it.
func priorityOf(pod *v1.Pod) int32 { return plan.Options{}.Priority(pod) }

// bucketOf returns the lowest priority of a pod's bucket, which identifies the bucket. Without a schedule all
// pods are in one bucket, 0.
func (k *kills) bucketOf(pod *v1.Pod) int32 {
	if len(k.schedule) == 0 {
		return 0
	}
	return k.schedule[k.schedule.Index(priorityOf(pod))].Priority
}

// views returns what View shows about each pod: its state, and how its stop goes.
func (k *kills) views(now time.Time, terminator *lifecycle.Terminator) []view.Pod {
	pods, stops := k.all()
	views := make([]view.Pod, 0, len(pods))
	for _, pod := range pods {
		shown := view.Pod{Name: pod.Namespace + "/" + pod.Name, Bucket: k.bucketOf(pod), State: view.Running}
		if stop, stopped := stops[pod.UID]; stopped {
			stop.show(&shown, now, terminator)
		}
		views = append(views, shown)
	}
	return views
}

// show fills shown with the state of a pod's stop and, if terminator knows the pod, of its containers.
func (s kill) show(shown *view.Pod, now time.Time, terminator *lifecycle.Terminator) {
	shown.State, shown.Granted, shown.Took = view.Ending, s.granted, now.Sub(s.began)
	if !s.ended.IsZero() {
		shown.State, shown.Took = view.Gone, s.ended.Sub(s.began)
	}
	if s.err != nil {
		shown.Problem = strings.ReplaceAll(s.err.Error(), "\n", "; ")
	}
	if termination, known := terminator.Termination(s.pod); known {
		shown.Deadline = termination.Deadline()
		for _, c := range termination.Result().Containers {
			shown.Containers = append(shown.Containers, view.ContainerOf(s.pod, c))
		}
	}
}
