package kills_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

func pod(name string) *v1.Pod {
	p := &v1.Pod{}
	p.Namespace, p.Name, p.UID = "default", name, types.UID("uid-"+name)
	return p
}

func priorityOfAll(*v1.Pod) (int32, bool) { return 7, true }

func pickedNames(picked []*kills.Kill) []string {
	var all []string
	for _, k := range picked {
		all = append(all, k.Pod.Name)
	}
	return all
}

// Pods are identified by their UIDs, or by their names if they have none.
func TestKey(t *testing.T) {
	require.Equal(t, types.UID("uid-web"), kills.Key(pod("web")))
	plain := pod("web")
	plain.UID = ""
	require.Equal(t, types.UID("default/web"), kills.Key(plain))
}

// A pod is picked once, by the first bucket that wants it, wherever it is in later lists and
// whatever object it is. Nil pods are skipped.
func TestPickTakesEachPodOnce(t *testing.T) {
	roster := kills.NewRoster(time.Now())
	a, b, c := pod("a"), pod("b"), pod("c")
	low := func(p *v1.Pod) (int32, bool) { return 5, p.Name == "a" }
	require.Equal(t, []string{"a"}, pickedNames(roster.Pick([]*v1.Pod{nil, a, b}, 0, low)))
	require.Empty(t, roster.Pick([]*v1.Pod{nil, a, b}, 0, low), "the same list")
	require.Empty(t, roster.Pick([]*v1.Pod{b, a.DeepCopy()}, 0, low), "another object at another place")

	second := roster.Pick([]*v1.Pod{c, a, b}, 10, priorityOfAll)
	require.Equal(t, []string{"c", "b"}, pickedNames(second))
	require.EqualValues(t, 7, second[0].Priority)
	require.EqualValues(t, 10, second[0].Bucket)
	require.Empty(t, roster.Pick([]*v1.Pod{a.DeepCopy(), b.DeepCopy(), c.DeepCopy()}, 10, priorityOfAll))
	require.Equal(t, []string{"a", "c", "b"}, pickedNames(roster.All()))
}

// A list that has a pod twice, as one object or as two, has it killed once.
func TestPickFromAListThatHasAPodTwice(t *testing.T) {
	roster := kills.NewRoster(time.Now())
	a, b := pod("a"), pod("b")
	twice := []*v1.Pod{a, a, nil, b, a.DeepCopy(), b.DeepCopy()}
	require.Equal(t, []string{"a", "b"}, pickedNames(roster.Pick(twice, 0, priorityOfAll)))
	require.Empty(t, roster.Pick(twice, 0, priorityOfAll))
	require.Empty(t, roster.Pick([]*v1.Pod{b, b, a}, 0, priorityOfAll))
	require.Len(t, roster.All(), 2)
}

// A pod that comes back with the name of a former one is another pod.
func TestPickAPodThatCameBack(t *testing.T) {
	roster := kills.NewRoster(time.Now())
	again := pod("a")
	again.UID = "another"
	require.Len(t, roster.Pick([]*v1.Pod{pod("a")}, 0, priorityOfAll), 1)
	require.Len(t, roster.Pick([]*v1.Pod{again}, 0, priorityOfAll), 1)
	require.Same(t, again, roster.Find("another").Pod)
}

// Pick keeps no reference to the list, which its owner may reuse.
func TestPickKeepsNoList(t *testing.T) {
	roster := kills.NewRoster(time.Now())
	pods := []*v1.Pod{pod("a"), pod("b")}
	roster.Pick(pods, 0, priorityOfAll)
	pods[0], pods[1] = pod("c"), pod("d")
	require.Equal(t, []string{"c", "d"}, pickedNames(roster.Pick(pods, 0, priorityOfAll)))
}

// What was picked is found, and what was not is not.
func TestFind(t *testing.T) {
	roster := kills.NewRoster(time.Now())
	require.Nil(t, roster.Find("uid-a"))
	first := roster.Pick([]*v1.Pod{pod("a")}, 0, priorityOfAll)
	require.Same(t, first[0], roster.Find("uid-a"))
	second := roster.Pick([]*v1.Pod{pod("a"), pod("b")}, 0, priorityOfAll)
	require.Same(t, second[0], roster.Find("uid-b"), "also one that came after the first search")
	require.Nil(t, roster.Find("uid-c"))
}

// A list of all kills does not change with those that come later.
func TestAllIsNotWrittenTo(t *testing.T) {
	roster := kills.NewRoster(time.Now())
	roster.Pick([]*v1.Pod{pod("a"), pod("b")}, 0, priorityOfAll)
	before := roster.All()
	mine := append(before, nil)
	roster.Pick([]*v1.Pod{pod("c")}, 0, priorityOfAll)
	require.Len(t, before, 2)
	require.Nil(t, mine[2])
	require.Equal(t, []string{"a", "b", "c"}, pickedNames(roster.All()))
}

// A kill that has not begun has no times and no result.
func TestKillThatIsPlanned(t *testing.T) {
	k := kills.NewRoster(time.Now()).Pick([]*v1.Pod{pod("a")}, 0, priorityOfAll)[0]
	require.Equal(t, kills.State{}, k.State())
	require.False(t, k.Signalled())
	require.False(t, k.HasEnded())
	require.Equal(t, "Options.Killer for pod default/a", k.String())
	require.Equal(t, "Options.Killer", (*kills.Kill)(nil).String())
	k.Acknowledge()
	require.True(t, k.State().Acknowledged)
}
