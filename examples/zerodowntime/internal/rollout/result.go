package rollout

import (
	"time"

	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/traffic"
)

// BinSeconds is the time that a [Bin] covers. The last bin of a result covers up to twice as
// much.
const BinSeconds = 0.5

// Result is what was measured in one scenario. Points in time are seconds since the start of
// the rolling update, rounded to milliseconds.
type Result struct {
	Scenario                      string         `json:"scenario"`
	Title                         string         `json:"title"`
	Load                          Load           `json:"load"`
	PreStopSleepSeconds           int64          `json:"preStopSleepSeconds"`
	TerminationGracePeriodSeconds int64          `json:"terminationGracePeriodSeconds"`
	DeleteGracePeriodSeconds      int64          `json:"deleteGracePeriodSeconds,omitempty"`
	Requests                      traffic.Counts `json:"requests"`
	// LongestAnswerSeconds is the time from the slowest answered request to its answer.
	LongestAnswerSeconds float64 `json:"longestAnswerSeconds"`
	// LastRefusalSeconds is the longest time from the SIGTERM of a pod to a request that was
	// refused there; 0 if none was refused.
	LastRefusalSeconds float64 `json:"lastRefusalAfterSignalSeconds"`
	// Pods are the replaced pods, in the order of their deletes.
	Pods []Pod `json:"pods"`
	// Bins count the outcomes over time, from the first event to the last.
	Bins []Bin `json:"bins"`
}

// Pod is the end of one pod.
type Pod struct {
	Name           string  `json:"name"`
	DeletedSeconds float64 `json:"deletedSeconds"`
	SignalSeconds  float64 `json:"signalSeconds"` // when it got SIGTERM; 0: it got none
	ExitedSeconds  float64 `json:"exitedSeconds"`
	Outcome        string  `json:"outcome"`     // the container's lifecycle.Outcome
	PreStop        string  `json:"preStop"`     // the hook's lifecycle.HookOutcome; "": it has no hook
	Exit           string  `json:"exit"`        // "exit status 0", "signal: killed"
	Killed         bool    `json:"killed"`      // SIGKILL was sent
	TookSeconds    float64 `json:"tookSeconds"` // from the delete to the exit
}

// Bin has the numbers of events in a stretch of time.
type Bin struct {
	AtSeconds float64 `json:"atSeconds"` // when it begins
	Seconds   float64 `json:"seconds"`   // how much time it covers
	traffic.Counts
}

// PerSecond returns how many requests a second had an outcome.
func (b Bin) PerSecond(o traffic.Outcome) float64 { return float64(b.Of(o)) / b.Seconds }

// Killed returns how many pods got SIGKILL.
func (r Result) Killed() (n int) {
	for _, p := range r.Pods {
		if p.Killed {
			n++
		}
	}
	return n
}

// LongestStopSeconds returns the longest time from a pod's delete to its exit.
func (r Result) LongestStopSeconds() (longest float64) {
	for _, p := range r.Pods {
		longest = max(longest, p.TookSeconds)
	}
	return longest
}

// LongestDrainSeconds returns the longest time from a pod's SIGTERM to its exit.
func (r Result) LongestDrainSeconds() (longest float64) {
	for _, p := range r.Pods {
		longest = max(longest, p.ExitedSeconds-p.SignalSeconds)
	}
	return longest
}

// measure sets the fields that follow from the events. start is when the rolling update
// started, and signalled has the time of each pod's SIGTERM by its name.
func (r *Result) measure(events []traffic.Event, start time.Time, signalled map[string]time.Time) {
	r.Requests = traffic.Count(events)
	for _, e := range events {
		switch e.Outcome {
		case traffic.Answered:
			r.LongestAnswerSeconds = max(r.LongestAnswerSeconds, seconds(e.Took))
		case traffic.Refused:
			if signal, ok := signalled[e.Pod]; ok {
				r.LastRefusalSeconds = max(r.LastRefusalSeconds, seconds(e.At.Sub(signal)))
			}
		case traffic.Cut, traffic.Moved:
		}
	}
	r.Bins = bins(events, start)
}

// bins counts events, which are sorted by time, in bins of BinSeconds.
func bins(events []traffic.Event, start time.Time) []Bin {
	if len(events) == 0 {
		return nil
	}
	const width = time.Duration(BinSeconds * float64(time.Second))
	first, last := events[0].At, events[len(events)-1].At
	n := max(int(last.Sub(first)/width), 1)
	bins := make([]Bin, n)
	for i := range bins {
		bins[i] = Bin{AtSeconds: seconds(first.Add(time.Duration(i) * width).Sub(start)), Seconds: BinSeconds}
	}
	bins[n-1].Seconds = max(BinSeconds, seconds(last.Sub(first)-time.Duration(n-1)*width))
	for _, e := range events {
		bins[min(int(e.At.Sub(first)/width), n-1)].Add(e.Outcome)
	}
	return bins
}

// seconds returns a span in seconds, rounded to milliseconds.
func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }
