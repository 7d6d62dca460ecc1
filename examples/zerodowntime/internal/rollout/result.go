package rollout

import (
	"time"

	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/traffic"
)

// BinSeconds is how much time one of a result's bins covers. The last one covers up to
// twice as much.
const BinSeconds = 0.5

// Result is what was measured in one scenario. All times are seconds since the rolling
// update began, to the millisecond.
type Result struct {
	Scenario                      string         `json:"scenario"`
	Title                         string         `json:"title"`
	Load                          Load           `json:"load"`
	PreStopSleepSeconds           int64          `json:"preStopSleepSeconds"`
	TerminationGracePeriodSeconds int64          `json:"terminationGracePeriodSeconds"`
	DeleteGracePeriodSeconds      int64          `json:"deleteGracePeriodSeconds,omitempty"`
	Requests                      traffic.Counts `json:"requests"`
	// LongestAnswerSeconds is how long the slowest answered request took.
	LongestAnswerSeconds float64 `json:"longestAnswerSeconds"`
	// LastRefusalSeconds is how long after the stop signal of its pod the last request was
	// refused there; 0 if none was.
	LastRefusalSeconds float64 `json:"lastRefusalAfterSignalSeconds"`
	// Pods are those that were replaced, in that order.
	Pods []Pod `json:"pods"`
	// Bins are the outcomes over time, from the first event to the last.
	Bins []Bin `json:"bins"`
}

// Pod is the end of one pod.
type Pod struct {
	Name           string  `json:"name"`
	DeletedSeconds float64 `json:"deletedSeconds"`
	SignalSeconds  float64 `json:"signalSeconds"` // SIGTERM; 0: none came
	ExitedSeconds  float64 `json:"exitedSeconds"`
	Outcome        string  `json:"outcome"`     // kubegrace's, of the container
	PreStop        string  `json:"preStop"`     // kubegrace's, of the hook; "": it has none
	Exit           string  `json:"exit"`        // "exit status 0", "signal: killed"
	Killed         bool    `json:"killed"`      // SIGKILL was sent
	TookSeconds    float64 `json:"tookSeconds"` // from the delete to the exit
}

// Bin is a stretch of time.
type Bin struct {
	AtSeconds float64 `json:"atSeconds"` // its beginning
	Seconds   float64 `json:"seconds"`   // how much time it covers
	traffic.Counts
}

// PerSecond is how many requests a second had an outcome.
func (b Bin) PerSecond(o traffic.Outcome) float64 { return float64(b.Of(o)) / b.Seconds }

// Killed is how many pods had to be killed.
func (r Result) Killed() (n int) {
	for _, p := range r.Pods {
		if p.Killed {
			n++
		}
	}
	return n
}

// LongestStopSeconds is the longest time from a pod's delete to its exit.
func (r Result) LongestStopSeconds() (longest float64) {
	for _, p := range r.Pods {
		longest = max(longest, p.TookSeconds)
	}
	return longest
}

// LongestDrainSeconds is the longest time from a pod's stop signal to its exit.
func (r Result) LongestDrainSeconds() (longest float64) {
	for _, p := range r.Pods {
		longest = max(longest, p.ExitedSeconds-p.SignalSeconds)
	}
	return longest
}

// measure fills in what the events say.
func (r *Result) measure(events []traffic.Event, began time.Time, signalled map[string]time.Time) {
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
	r.Bins = bins(events, began)
}

// bins counts events in the order of time.
func bins(events []traffic.Event, began time.Time) []Bin {
	if len(events) == 0 {
		return nil
	}
	const width = time.Duration(BinSeconds * float64(time.Second))
	first, last := events[0].At, events[len(events)-1].At
	n := max(int(last.Sub(first)/width), 1)
	bins := make([]Bin, n)
	for i := range bins {
		bins[i] = Bin{AtSeconds: seconds(first.Add(time.Duration(i) * width).Sub(began)), Seconds: BinSeconds}
	}
	bins[n-1].Seconds = max(BinSeconds, seconds(last.Sub(first)-time.Duration(n-1)*width))
	for _, e := range events {
		bins[min(int(e.At.Sub(first)/width), n-1)].Add(e.Outcome)
	}
	return bins
}

// seconds are those of a span, to the millisecond.
func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }
