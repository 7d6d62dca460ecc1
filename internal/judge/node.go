package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// NodeWhat says what a [NodeFact] is about.
type NodeWhat string

// What can be seen of an agent on its node. The comments name the fields that count beside At.
const (
	NodeBooted       NodeWhat = "the machine has booted"                 // times count from here
	NodeBegan        NodeWhat = "an agent begins"                        //
	NodeDied         NodeWhat = "the agent has died"                     //
	NodeRunEnded     NodeWhat = "Run ends"                               //
	NodeTerminateAll NodeWhat = "TerminateAll is called"                 //
	NodeCalm         NodeWhat = "no more faults, and nothing is pending" //
	NodeFinished     NodeWhat = "the run is over"                        // Pods: those that are refused; Refuses: all are; Ready: those that are ready at the API server
	NodePodRuns      NodeWhat = "a pod runs"                             // Pod, Priority, Seconds: its grace period, -1: none
	NodePodEnded     NodeWhat = "a pod has ended"                        // Pod
	NodeLogged       NodeWhat = "the log says that a pod was signalled"  // Pod: before it could be killed
	NodePodLost      NodeWhat = "a power cut has taken what was stored"  // Pod
	NodeTicked       NodeWhat = "a tick"                                 // Effects
	NodeInput        NodeWhat = "an input"                               // Text
	NodeState        NodeWhat = "after a step"                           // State, Refuses, Calls, Shutdown
	NodeWindows      NodeWhat = "a timetable"                            // Shutdown, Own, Windows, WaitEnd, ReleaseBy, Planned, Failed: there is no log
	NodeCancelled    NodeWhat = "the shutdown is cancelled"              // Shutdown
	NodeStored       NodeWhat = "a pod is stored"                        // Pod, Until: its deadline
	NodeSync         NodeWhat = "the log is to be synced"                // Call
	NodeSynced       NodeWhat = "the log is synced"                      // Call
	NodeListing      NodeWhat = "a list is asked for"                    // Call
	NodeListed       NodeWhat = "a list was answered"                    // Pods, Failed
	NodeKill         NodeWhat = "a pod is killed"                        // Pod, Call, Seconds, Until: its deadline, Shutdown: that drains, 0: none does, Own: it is TerminateAll's, Bucket: of the pod in the log
	NodeKilled       NodeWhat = "a kill was answered"                    // Pod, Call, Failed, NoRetry
	NodeStarts       NodeWhat = "a static pod asks to start"             // Pod: it is refused this time
	NodeTold         NodeWhat = "the API server has the final status"    // Pod
	NodePublish      NodeWhat = "the node's state is to be published"    // Call, Shutdown: 0: it does not shut down
	NodePublished    NodeWhat = "the answer about the node's state"      // Call, Failed
	NodeSuspended    NodeWhat = "the lock is released at a time"         // Until
	NodeReleased     NodeWhat = "the lock is released"                   //
	NodeRetaken      NodeWhat = "the lock is wanted during the shutdown" //
	NodeHeldAgain    NodeWhat = "the lock is wanted after the shutdown"  //
	NodeReported     NodeWhat = "the report"                             // Shutdown, Pods
	NodePanicked     NodeWhat = "the core has panicked"                  // Text
)

// NodeFact is something that is seen of a node.
type NodeFact struct {
	At        time.Time
	What      NodeWhat
	Pod       string
	Priority  int32
	Bucket    int32
	Call      int
	Calls     int // under way
	Effects   int
	Shutdown  int
	Seconds   int64
	Until     time.Time
	WaitEnd   time.Time
	ReleaseBy time.Time
	Planned   bool
	Windows   []NodeWindow
	Pods      []string
	Ready     []string
	State     string
	Text      string
	Refuses   bool
	Failed    bool
	NoRetry   bool
	Own       bool
}

// NodeWindow is the window of a bucket.
type NodeWindow struct {
	Priority      int32 // the lowest one of its pods
	Pods          time.Duration
	KillsEnd, End time.Time
}

func (f NodeFact) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%9.3f %s", f.At.Sub(time.Unix(0, 0)).Seconds(), f.What)
	say := func(is bool, format string, args ...any) {
		if is {
			fmt.Fprintf(&b, format, args...)
		}
	}
	since := func(t time.Time) float64 { return t.Sub(time.Unix(0, 0)).Seconds() }
	say(f.Pod != "", " %s", f.Pod)
	say(f.What == NodePodRuns, " of priority %d with %d s", f.Priority, f.Seconds)
	say(f.What == NodeKill, " with %d s", f.Seconds)
	say(!f.Until.IsZero(), " until %.3f", since(f.Until))
	say(f.Call != 0, " (call %d)", f.Call)
	say(f.Shutdown != 0, " shutdown %d", f.Shutdown)
	say(f.State != "", " %s, %d calls", f.State, f.Calls)
	say(f.Own, " by TerminateAll")
	say(f.Failed, " failed")
	say(f.NoRetry, " for good")
	say(len(f.Pods) > 0, " %v", f.Pods)
	say(f.Text != "", " %s", f.Text)
	for _, w := range f.Windows {
		fmt.Fprintf(&b, " [%d: %.3f %.3f]", w.Priority, since(w.KillsEnd), since(w.End))
	}
	say(!f.WaitEnd.IsZero(), " waits until %.3f, planned %v", since(f.WaitEnd), f.Planned)
	return b.String()
}

// NodeRecord is all that was seen of a node, in order.
type NodeRecord struct {
	// Publishes, Statuses and Marks say what the API server is told: the node's state, final statuses of
	// pods, and readiness marks, which are also taken back.
	Publishes, Statuses, Marks bool
	// NoRollOver says that the pods have their bucket's time alone.
	NoRollOver bool
	// Facts are what was seen.
	Facts []NodeFact
}

// Add adds a fact.
func (r *NodeRecord) Add(f NodeFact) { r.Facts = append(r.Facts, f) }

// Story returns the record as text, a line for each fact.
func (r *NodeRecord) Story() string {
	var b strings.Builder
	for _, f := range r.Facts {
		if f.What != NodeTicked || f.Effects > 0 {
			fmt.Fprintln(&b, f)
		}
	}
	return b.String()
}

const (
	nodeLag        = 101 * time.Millisecond // what a timer may lag, and rounding
	nodeRetry      = time.Second + 50*time.Millisecond
	nodeIdleTicks  = 40
	nodeSpareCalls = 20 // beside those for each pod
)

// NodeRules returns the rules by their names. Each returns the promises that were broken, a sentence each.
func NodeRules() map[string]func(*NodeRecord) []string {
	return map[string]func(*NodeRecord) []string{
		"a deadline only moves earlier":                               deadlinesOnlyMoveEarlier,
		"nobody is granted time after the end of the waits":           nobodyIsGrantedTimeAfterTheWaits,
		"nobody is granted less than the window leaves":               nobodyIsGrantedLessThanTheWindowLeaves,
		"no pod is killed while lower ones have time":                 noPodIsKilledWhileLowerOnesHaveTime,
		"windows only move earlier":                                   windowsOnlyMoveEarlier,
		"a pod is killed after it is in the log":                      aPodIsKilledAfterItIsInTheLog,
		"pods are refused and the state published before a kill":      refuseAndPublishBeforeKill,
		"the log is synced before the release":                        theLogIsSyncedBeforeTheRelease,
		"after a cancellation nobody is signalled":                    afterACancellationNobodyIsSignalled,
		"a cancellation undoes everything at once":                    aCancellationUndoesEverythingAtOnce,
		"the lock is released once, and in time":                      theLockIsReleasedOnceAndInTime,
		"every end that was reached is told":                          everyEndThatWasReachedIsTold,
		"no end that was not reached is told":                         noEndThatWasNotReachedIsTold,
		"each shutdown is reported once, with everyone it has killed": eachShutdownIsReportedOnce,
		"a shutdown refuses pods":                                     aShutdownRefusesPods,
		"nobody is forgotten":                                         nobodyIsForgotten,
		"whoever lives on is ready":                                   whoeverLivesOnIsReady,
		"a kill that has failed is repeated":                          aFailedKillIsRepeated,
		"nothing grows":                                               nothingGrows,
		"no busy loop":                                                noBusyLoop,
		"no panic":                                                    noPanic,
		"calm ends every drain":                                       calmEndsEveryDrain,
	}
}

// Node returns the promises about a node that were broken, sorted.
func Node(r *NodeRecord) (broken []string) {
	for name, rule := range NodeRules() {
		for _, text := range rule(r) {
			broken = append(broken, name+": "+text)
		}
	}
	slices.Sort(broken)
	return broken
}

// nodeBreach says that a fact breaks a rule.
func nodeBreach(f NodeFact, format string, args ...any) string {
	return f.String() + ": " + fmt.Sprintf(format, args...)
}
