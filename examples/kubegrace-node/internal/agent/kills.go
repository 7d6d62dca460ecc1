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

// kills are the pods that the runtime has listed last, and those that were told to stop.
type kills struct {
	schedule plan.Schedule

	mu    sync.Mutex // guards what follows; never held while anything waits
	last  []*v1.Pod
	kills map[types.UID]*kill
}

// kill is the stop of one pod.
type kill struct {
	pod          *v1.Pod
	granted      int64
	began, ended time.Time // ended is zero while it is under way
	err          error
}

func newKills(schedule plan.Schedule) *kills {
	return &kills{schedule: schedule, kills: map[types.UID]*kill{}}
}

// listed records a complete list of the pods.
func (k *kills) listed(pods []*v1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = pods
}

// begin records that a pod is told to stop, unless it is already. One whose stop has failed is told again.
func (k *kills) begin(pod *v1.Pod, granted int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if existing := k.kills[pod.UID]; existing != nil && (existing.ended.IsZero() || existing.err != nil) {
		existing.ended, existing.err = time.Time{}, nil
		return
	}
	k.kills[pod.UID] = &kill{pod: pod, granted: granted, began: time.Now()}
}

func (k *kills) end(pod *v1.Pod, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if existing := k.kills[pod.UID]; existing != nil {
		existing.ended, existing.err = time.Now(), err
	}
}

// forgetEnded forgets the pods whose stop has ended: the shutdown is over.
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

// underWay returns the names of the pods that are being stopped.
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

// all returns the pods and their stops, nil for one that was not told to stop, in the order in
// which they stop.
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

// sort sorts pods in the order in which they stop.
func (k *kills) sort(pods []*v1.Pod) {
	slices.SortStableFunc(pods, func(a, b *v1.Pod) int {
		return cmp.Or(cmp.Compare(k.bucketOf(a), k.bucketOf(b)), cmp.Compare(priorityOf(a), priorityOf(b)))
	})
}

func priorityOf(pod *v1.Pod) int32 { return plan.Options{}.Priority(pod) }

// bucketOf returns the lowest priority of a pod's bucket.
func (k *kills) bucketOf(pod *v1.Pod) int32 {
	if len(k.schedule) == 0 {
		return 0
	}
	return k.schedule[k.schedule.Index(priorityOf(pod))].Priority
}

// views returns what is shown of all pods.
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

// show adds the stop of a pod to what is shown of it.
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
