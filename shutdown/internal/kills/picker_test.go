package kills_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

// picking is an account with a picker.
type picking struct {
	*kills.Picker

	account *kills.Account
}

func newPicking() picking {
	account := kills.NewAccount(time.Now(), nobody)
	return picking{kills.NewPicker(account, 1), account}
}

// pick enters a list and returns the names of the pods that it picks.
func (p picking) pick(pods []*v1.Pod, bucket int32, wants func(int32) bool) []string {
	p.AddListed(pods, func(of []*v1.Pod) []int32 {
		priorities := make([]int32, len(of))
		for i, pod := range of {
			priorities[i] = int32(pod.Name[0] - 'a')
		}
		return priorities
	})
	return namesOf(p.Pick(bucket, wants))
}

func upTo(priority int32) func(int32) bool { return func(p int32) bool { return p <= priority } }

// Pods are identified by their UIDs, or by their names if they have none.
func TestKey(t *testing.T) {
	require.Equal(t, types.UID("uid-web"), kills.Key(pod("web")))
	plain := pod("web")
	plain.UID = ""
	require.Equal(t, types.UID("default/web"), kills.Key(plain))
}

// A pod is picked once, by the first bucket that wants it, wherever it is in later lists and
// whatever object it is. Nil pods are skipped. The priority is asked for once.
func TestPickTakesEachPodOnce(t *testing.T) {
	p := newPicking()
	a, b, c := pod("a"), pod("b"), pod("c")
	require.Equal(t, []string{"a"}, p.pick([]*v1.Pod{nil, a, b}, 0, upTo(0)))
	require.Empty(t, p.pick([]*v1.Pod{nil, a, b}, 0, upTo(0)), "the same list")
	require.Empty(t, p.pick([]*v1.Pod{b, a.DeepCopy()}, 0, upTo(0)), "another object at another place")

	require.Equal(t, []string{"c", "b"}, p.pick([]*v1.Pod{c, a, b}, 10, everyone))
	require.EqualValues(t, 2, p.account.Find("uid-c").Priority)
	require.EqualValues(t, 10, p.account.Find("uid-c").State().Bucket)
	require.Empty(t, p.pick([]*v1.Pod{a.DeepCopy(), b.DeepCopy(), c.DeepCopy()}, 10, everyone))
	require.Equal(t, []string{"a", "b", "c"}, namesOf(p.account.All()))
}

// A list that has a pod twice, as one object or as two, has it killed once.
func TestPickFromAListThatHasAPodTwice(t *testing.T) {
	p := newPicking()
	a, b := pod("a"), pod("b")
	twice := []*v1.Pod{a, a, nil, b, a.DeepCopy(), b.DeepCopy()}
	require.Equal(t, []string{"a", "b"}, p.pick(twice, 0, everyone))
	require.Empty(t, p.pick(twice, 0, everyone))
	require.Empty(t, p.pick([]*v1.Pod{b, b, a}, 0, everyone))
	require.Len(t, p.account.All(), 2)
}

// A pod that comes back with the name of a former one is another pod.
func TestPickAPodThatCameBack(t *testing.T) {
	p := newPicking()
	again := pod("a")
	again.UID = "another"
	require.Len(t, p.pick([]*v1.Pod{pod("a")}, 0, everyone), 1)
	require.Len(t, p.pick([]*v1.Pod{again}, 0, everyone), 1)
	require.Same(t, again, p.account.Find("another").Pod())
}

// Pick keeps no reference to the list, which its owner may reuse.
func TestPickKeepsNoList(t *testing.T) {
	p := newPicking()
	pods := podsOf("a", "b")
	p.pick(pods, 0, everyone)
	pods[0], pods[1] = pod("c"), pod("d")
	require.Equal(t, []string{"c", "d"}, p.pick(pods, 0, everyone))
}

// A later list brings the pod as it is now.
func TestLaterListBringsTheNewerPod(t *testing.T) {
	p := newPicking()
	p.pick(podsOf("a"), 0, everyone)
	newer := pod("a")
	p.pick([]*v1.Pod{newer}, 0, everyone)
	require.Same(t, newer, p.account.Find("uid-a").Pod())
}

// A drain leaves alone whom a newer drain of the same shutdown has picked, and a newer one picks
// whom an older one has picked.
func TestNewerDrainPicksFromAnOlderOne(t *testing.T) {
	p := newPicking()
	newer := picking{kills.NewPicker(p.account, 2), p.account}
	require.Equal(t, []string{"a"}, p.pick(podsOf("a", "b"), 0, upTo(0)))
	require.Equal(t, []string{"a", "b"}, newer.pick(podsOf("a", "b"), 0, everyone))
	require.Empty(t, p.pick(podsOf("a", "b"), 0, everyone))
}

// What was entered is found, and what was not is not.
func TestFind(t *testing.T) {
	p := newPicking()
	require.Nil(t, p.account.Find("uid-a"))
	p.pick(podsOf("a"), 0, everyone)
	require.Equal(t, "a", p.account.Find("uid-a").Pod().Name)
	p.pick(podsOf("a", "b"), 0, everyone)
	require.Equal(t, "b", p.account.Find("uid-b").Pod().Name, "also one that came after the first search")
	require.Nil(t, p.account.Find("uid-c"))
}

// A list of all kills does not change with those that come later.
func TestAllIsNotWrittenTo(t *testing.T) {
	p := newPicking()
	p.pick(podsOf("a", "b"), 0, everyone)
	before := p.account.All()
	mine := append(before, nil)
	p.pick(podsOf("c"), 0, everyone)
	require.Len(t, before, 2)
	require.Nil(t, mine[2])
	require.Equal(t, []string{"a", "b", "c"}, namesOf(p.account.All()))
}

// A kill that has not begun has no times and no result.
func TestKillThatIsPlanned(t *testing.T) {
	p := newPicking()
	p.pick(podsOf("a"), 0, everyone)
	k := p.account.Find("uid-a")
	require.Equal(t, kills.State{}, k.State())
	require.False(t, k.Signalled())
	require.False(t, k.UnderWay())
	require.False(t, k.HasEnded())
	_, known := k.Left()
	require.False(t, known)
	require.Equal(t, "Options.Killer for pod default/a", k.String())
	require.Equal(t, "Options.Killer", (*kills.Kill)(nil).String())
	k.Acknowledge()
	require.True(t, k.State().Acknowledged)
	require.True(t, k.Count())
	require.False(t, k.Count(), "once")
}

// restored is an account with what a former agent has on record: a pod that has ended, one that was
// signalled with 20 s 5 s ago, and one that was not signalled.
func restored() *kills.Account {
	began := time.Now().Add(-5 * time.Second)
	account := kills.NewAccount(began, nobody)
	account.Restore(kills.Restored{Pod: pod("over"), Priority: 3, Bucket: 10, Signalled: true, Seconds: 20, Started: began, Ended: began.Add(time.Second), Outcome: "Graceful"})
	account.Restore(kills.Restored{Pod: pod("under"), Priority: 4, Bucket: 10, Signalled: true, Seconds: 20, Started: began, Joined: true})
	account.Restore(kills.Restored{Pod: pod("later"), Priority: 5})
	return account
}

// Whom a former agent has signalled, or may have, and whose end is not on record is picked, listed
// or not, whatever the list looks like. One whose end is on record is not, even if it is listed.
func TestPickFromTheRecord(t *testing.T) {
	for name, listed := range map[string][]*v1.Pod{
		"nobody":                        nil,
		"all":                           podsOf("over", "under", "later"),
		"one who has ended":             podsOf("over"),
		"another":                       podsOf("web"),
		"as many as are on record":      {pod("over"), nil, nil},
		"one as often as on record":     {pod("over"), pod("over"), pod("over")},
		"as many as there are with web": {pod("web"), nil, pod("web"), pod("over")},
	} {
		t.Run(name, func(t *testing.T) {
			account := restored()
			p := kills.NewPicker(account, 1)
			p.AddListed(listed, priorityOfAll)
			want := []string{"under", "later"}
			if slices.ContainsFunc(listed, func(pod *v1.Pod) bool { return pod != nil && pod.Name == "web" }) {
				want = append(want, "web")
			}
			require.ElementsMatch(t, want, namesOf(p.Due()))
			require.ElementsMatch(t, want, namesOf(p.Pick(20, everyone)))
			require.Empty(t, p.Pick(20, everyone), "once")
		})
	}
}

// A pod of the record has the times, the grace period and the bucket of its first kill, and what is
// left of that grace period and no more.
func TestKillOfAPodOnRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRigOn(t, restored(), 1, takes(time.Second))
		began := time.Now()
		r.picker.AddListed(nil, priorityOfAll)
		batch := r.Start(r.picker.Pick(20, everyone))
		awaitBatch(t, batch)
		require.Equal(t, map[string][]int64{"under": {15}, "later": {20}}, r.granted)
		require.Equal(t, []string{"later"}, r.signalled, "the other one was signalled before")
		require.Equal(t, []string{"later", "under"}, r.endedPods())
		under := r.account.Find("uid-under")
		require.True(t, under.State().Started.Equal(began.Add(-5*time.Second)))
		require.EqualValues(t, 20, under.State().Seconds)
		require.EqualValues(t, 10, under.State().Bucket)
		require.EqualValues(t, 20, r.account.Find("uid-later").State().Bucket)
		require.True(t, r.account.Joined(under))
		require.True(t, under.Count())
		over := r.account.Find("uid-over")
		require.Equal(t, "Graceful", over.State().Result.Outcome)
		require.True(t, over.State().Ended.Equal(began.Add(-4*time.Second)))
		require.False(t, over.Count(), "the former agent has counted it")
	})
}

// A pod that is on record as ended stays so, whatever another account has under way.
func TestTakeOverOfAPodThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account, other := restored(), newRig(t, takes(time.Second))
		batch, _ := other.startBatch("over", "under")
		synctest.Wait()
		account.TakeOver(other.account.All())
		require.True(t, account.Find("uid-over").HasEnded())
		require.Same(t, other.account.Find("uid-under"), account.Find("uid-under"))
		awaitBatch(t, batch)
	})
}
