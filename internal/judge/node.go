package judge

import (
	"fmt"
	"strings"
	"time"
)

// NodeWhat is the kind of a [NodeFact].
type NodeWhat string

// What a [NodeFact] can say about an agent on its node. The comment after each constant names the fields of such a fact that are
// set besides At, and explains those whose names do not say what they mean.
const (
	NodeBooted              NodeWhat = "the machine has booted" // At is the origin of all times
	NodeAgentBegan          NodeWhat = "an agent begins"        // NoLog: it has not read the state log, so it knows no deadlines
	NodeDied                NodeWhat = "the agent has died"
	NodeRunEnded            NodeWhat = "Run ends"
	NodeTerminateAll        NodeWhat = "TerminateAll is called"
	NodeFinished            NodeWhat = "the run is over"                        // Pods: those that may not start; Refuses: no pod may; Ready: those that are ready at the API server
	NodePodRuns             NodeWhat = "a pod runs"                             // Pod, Priority, Seconds: its grace period, -1: none
	NodePodEnded            NodeWhat = "a pod has ended"                        // Pod
	NodeKillReadFromLog     NodeWhat = "the log says that a pod was signalled"  // Pod: a new agent has read that
	NodeKillLostFromLog     NodeWhat = "a power cut has taken what was stored"  // Pod
	NodeTicked              NodeWhat = "a tick"                                 // Effects
	NodeInput               NodeWhat = "an input"                               // Text
	NodeState               NodeWhat = "after a step"                           // State, Refuses, Calls, Shutdown, Draining: the shutdown whose drain is in progress, 0: none is; BucketsOver: how many buckets the log says it has finished
	NodeTimetable           NodeWhat = "a timetable"                            // Shutdown, ByTerminateAll, Windows, WaitEnd, ReleaseBy, Planned: made with a list of the pods; NoLog: not in the state log
	NodeCancelled           NodeWhat = "the shutdown is cancelled"              // Shutdown
	NodeKillLogged          NodeWhat = "a pod is stored"                        // Pod, Until: its deadline, which is now in the state log
	NodeDrainStepBegins     NodeWhat = "the drain calls"                        // Call, Text: its name, such as Prepare or Unmount; the drain waits for the answer
	NodeDrainStepAnswered   NodeWhat = "a step was answered"                    // Call
	NodeAborted             NodeWhat = "a call is aborted"                      // Call
	NodeSyncBegins          NodeWhat = "the log is to be synced"                // Call
	NodeSynced              NodeWhat = "the log is synced"                      // Call
	NodeListed              NodeWhat = "a list was answered"                    // Pods, Failed
	NodeKill                NodeWhat = "a pod is killed"                        // Pod, Call, Seconds, Until: its deadline; Shutdown: the one whose drain kills it, 0: no drain does; ByTerminateAll: the drain is TerminateAll's; BucketsOver: how many buckets it has finished
	NodeKillAnswered        NodeWhat = "a kill was answered"                    // Pod, Call, Failed, NoRetry
	NodeCounted             NodeWhat = "a pod is counted in the metrics"        // Pod, Failed: it is not known to have ended
	NodeStaticPodStarts     NodeWhat = "a static pod is to start"               // Pod: from now on no final status may be sent for its previous run
	NodeFinalStatusAccepted NodeWhat = "the API server has the final status"    // Pod
	NodeMarked              NodeWhat = "the API server sees a pod as not ready" // Pod
	NodeUnmarked            NodeWhat = "the API server sees a pod as ready"     // Pod
	NodePublishBegins       NodeWhat = "the node's state is to be published"    // Call, Shutdown: 0: the node does not shut down
	NodePublishAnswered     NodeWhat = "the answer about the node's state"      // Call, Failed
	NodeReleaseAnnounced    NodeWhat = "the lock is released at a time"         // Until: that time, which the agent announces
	NodeReleased            NodeWhat = "the lock is released"
	NodeRetaken             NodeWhat = "the lock is wanted during the shutdown"
	NodeLockRequested       NodeWhat = "the lock is wanted after the shutdown"
	NodeReported            NodeWhat = "the report"            // Shutdown, Pods
	NodePanicked            NodeWhat = "the core has panicked" // Text
)

// NodeFact is one observation of a node. The comment of its What names the fields that are set.
type NodeFact struct {
	At          time.Time
	What        NodeWhat
	Pod         string
	Priority    int32
	Call        int
	Calls       int // how many are in progress
	Effects     int // how many the tick had
	Shutdown    int // the number of a shutdown, from 1
	Draining    int // the number of a shutdown; 0: none
	BucketsOver int
	Seconds     int64 // a grace period
	Until       time.Time
	WaitEnd     time.Time
	ReleaseBy   time.Time
	Planned     bool
	Windows     []NodeWindow
	Pods        []string
	Ready       []string
	State       string
	Text        string
	Refuses     bool
	Failed      bool
	NoRetry     bool
	NoLog       bool

	ByTerminateAll bool
}

// NodeWindow is the time that a drain gives to a bucket, which has the pods of one range of priorities.
type NodeWindow struct {
	Priority      int32         // the lowest priority of its pods
	OwnTime       time.Duration // the bucket's configured time, without what lower buckets leave unused
	KillsEnd, End time.Time     // when the bucket's pods must have ended, and when its other work, such as the unmount, must
}

// sinceBoot returns a time as violations print it. A record begins with the boot of the machine, at time.Unix(0, 0).
func sinceBoot(t time.Time) time.Duration { return t.Sub(time.Unix(0, 0)) }

// isSet reports whether f is a fact. The zero NodeFact stands for "no such fact".
func (f NodeFact) isSet() bool { return f.What != "" }

// String returns the fact as one line, with its times in seconds since the boot.
func (f NodeFact) String() string {
	var b strings.Builder
	seconds := func(t time.Time) float64 { return sinceBoot(t).Seconds() }
	fmt.Fprintf(&b, "%9.3f %s", seconds(f.At), f.What)
	addIf := func(isShown bool, format string, args ...any) {
		if isShown {
			fmt.Fprintf(&b, format, args...)
		}
	}
	addIf(f.Pod != "", " %s", f.Pod)
	addIf(f.What == NodePodRuns, " of priority %d with %d s", f.Priority, f.Seconds)
	addIf(f.What == NodeKill, " with %d s", f.Seconds)
	addIf(!f.Until.IsZero(), " until %.3f", seconds(f.Until))
	addIf(f.Call != 0, " (call %d)", f.Call)
	addIf(f.Shutdown != 0, " shutdown %d", f.Shutdown)
	addIf(f.State != "", " %s, %d calls", f.State, f.Calls)
	addIf(f.Draining != 0, ", shutdown %d drains, %d buckets are over", f.Draining, f.BucketsOver)
	addIf(f.ByTerminateAll, " by TerminateAll")
	addIf(f.Failed || f.NoLog, " failed")
	addIf(f.NoRetry, " for good")
	addIf(len(f.Pods) > 0, " %v", f.Pods)
	addIf(f.Text != "", " %s", f.Text)
	for _, w := range f.Windows {
		fmt.Fprintf(&b, " [%d: %.3f %.3f]", w.Priority, seconds(w.KillsEnd), seconds(w.End))
	}
	addIf(!f.WaitEnd.IsZero(), " waits until %.3f, planned %v", seconds(f.WaitEnd), f.Planned)
	return b.String()
}

// NodeRecord has all observations of a node, in order.
type NodeRecord struct {
	// Publishes, Statuses and Marks say what the agent sends to the API server: the node's state, final
	// pod statuses, and readiness marks, which it also reverts.
	Publishes, Statuses, Marks bool
	// NoRollOver says that a bucket does not get the time that lower buckets leave unused.
	NoRollOver bool
	Facts      []NodeFact
}

// Add adds a fact.
func (r *NodeRecord) Add(f NodeFact) { r.Facts = append(r.Facts, f) }

// Story returns the record as text, one fact per line, without ticks that had no effect.
func (r *NodeRecord) Story() string {
	var b strings.Builder
	for _, f := range r.Facts {
		if f.What != NodeTicked || f.Effects > 0 {
			fmt.Fprintln(&b, f)
		}
	}
	return b.String()
}
