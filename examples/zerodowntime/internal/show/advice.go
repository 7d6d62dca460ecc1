package show

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/rollout"
)

// Advice is what to set for one kind of service, as far as the runs have shown it.
type Advice struct {
	For string `json:"for"`
	// PreStopSleepSeconds and TerminationGracePeriodSeconds are the least values that
	// the runs speak for, for a service as the measured one; 0: they do not say.
	PreStopSleepSeconds           int64  `json:"preStopSleepSeconds,omitempty"`
	TerminationGracePeriodSeconds int64  `json:"terminationGracePeriodSeconds,omitempty"`
	Why                           string `json:"why"`
}

// Advise draws what a user should set from what was measured. A kind of service of which
// nothing was is left out.
func Advise(results []rollout.Result, delay time.Duration) []Advice {
	byName := map[string]rollout.Result{}
	for _, r := range results {
		byName[r.Scenario] = r
	}
	advice := []Advice{}
	both := func(kind, a, b string, advise func(a, b rollout.Result) Advice) {
		first, haveFirst := byName[a]
		second, haveSecond := byName[b]
		if !haveFirst && !haveSecond {
			return
		}
		drawn := Advice{Why: fmt.Sprintf("Not measured: that needs the scenarios %s and %s.", a, b)}
		if haveFirst && haveSecond {
			drawn = advise(first, second)
		}
		drawn.For = kind
		advice = append(advice, drawn)
	}
	both("web servers", rollout.NoSleep, rollout.Sleep, func(none, slept rollout.Result) Advice { return forWeb(none, slept, delay) })
	both("workers with long tasks", rollout.LongRequests, rollout.ShortGrace, forTasks)
	both("websockets", rollout.WebsocketsCut, rollout.WebsocketsDrain, forWebsockets)
	return advice
}

// forWeb compares short requests without and with a sleep.
func forWeb(none, slept rollout.Result, delay time.Duration) Advice {
	if none.Requests.Failed() == 0 {
		return Advice{Why: fmt.Sprintf("Without a sleep none of %s failed: the proxy, %s late, did not send any to a pod that had stopped listening. "+
			"Measure with the delay of your own load balancer (--delay).", requests(none), delay)}
	}
	why := fmt.Sprintf("Without a sleep %d of %s failed. On SIGTERM a server stops listening, and the proxy, which learns of it %s late, "+
		"sent requests there until %.1f s after it.", none.Requests.Failed(), requests(none), delay, none.LastRefusalSeconds)
	if slept.Requests.Failed() > 0 {
		return Advice{Why: why + fmt.Sprintf(" With sleep: %d still %d of %s failed: the sleep must be longer than the proxy is late.",
			slept.PreStopSleepSeconds, slept.Requests.Failed(), requests(slept))}
	}
	sleep := above(none.LastRefusalSeconds)
	grace := sleep + above(slept.LongestDrainSeconds()) + 1
	return Advice{
		PreStopSleepSeconds: sleep, TerminationGracePeriodSeconds: grace,
		Why: why + fmt.Sprintf(" With sleep: %d none of %s failed. The sleep has to outlast the %.1f s, so %d s is the least; the grace is the sleep, "+
			"the %.1f s that the slowest pod needed after SIGTERM, and a second to spare.",
			slept.PreStopSleepSeconds, requests(slept), none.LastRefusalSeconds, sleep, slept.LongestDrainSeconds()),
	}
}

// forTasks compares long-running requests with enough grace and with too little.
func forTasks(long, cut rollout.Result) Advice {
	var why strings.Builder
	fmt.Fprintf(&why, "With a grace of %d s %s of %s failed; the slowest answer took %.1f s, and the slowest pod %.1f s from its delete to its exit, "+
		"sleep: %d included, because the sleep is taken from the grace.", long.TerminationGracePeriodSeconds, none(long.Requests.Failed()), requests(long),
		long.LongestAnswerSeconds, long.LongestStopSeconds(), long.PreStopSleepSeconds)
	fmt.Fprintf(&why, " With the grace cut to %d s %d of %d pods were killed and %s of %s failed.",
		cut.DeleteGracePeriodSeconds, cut.Killed(), len(cut.Pods), none(cut.Requests.Failed()), requests(cut))
	if cut.Requests.Failed() == 0 {
		why.WriteString(" The tasks were short enough even for that: measure with your own (--task, --short-grace).")
	}
	if long.Requests.Failed() > 0 {
		why.WriteString(" The grace must be longer than the sleep and the longest task together.")
		return Advice{Why: why.String()}
	}
	why.WriteString(" So the grace has to be longer than the slowest pod took, and who deletes pods must not shorten it (kubectl delete --grace-period, a node's shutdownGracePeriod).")
	return Advice{PreStopSleepSeconds: long.PreStopSleepSeconds, TerminationGracePeriodSeconds: above(long.LongestStopSeconds()) + 1, Why: why.String()}
}

// forWebsockets compares websockets that break with those that are closed.
func forWebsockets(broken, drained rollout.Result) Advice {
	why := fmt.Sprintf("A preStop sleep keeps new connections away and moves none of the old ones: with sleep: %d, %s of the websockets broke when their servers ended. "+
		"Where the server closes each with a close frame (1001) after SIGTERM, %s broke and %d moved to another pod; the slowest pod needed %.1f s for that.",
		broken.PreStopSleepSeconds, none(broken.Requests.Failed()), none(drained.Requests.Failed()), drained.Requests.Moved, drained.LongestDrainSeconds())
	if drained.Requests.Failed() > 0 {
		return Advice{Why: why}
	}
	return Advice{
		PreStopSleepSeconds:           drained.PreStopSleepSeconds,
		TerminationGracePeriodSeconds: above(drained.LongestStopSeconds()) + 1,
		Why: why + " So the server has to close them, spread over a few seconds so that not all clients come back at once, " +
			"and the grace has to cover sleep and closing.",
	}
}

// above is the least number of whole seconds that is more than s.
func above(s float64) int64 { return int64(math.Floor(s)) + 1 }

func requests(r rollout.Result) string {
	kind := "requests"
	if r.Load == rollout.Tasks {
		kind = "long requests"
	}
	return fmt.Sprintf("%d %s", r.Requests.Answered+r.Requests.Failed(), kind)
}

func none(n int) string {
	if n == 0 {
		return "none"
	}
	return strconv.Itoa(n)
}

// manifest is what to write into a pod; "" where the runs do not say.
func (a Advice) manifest() []string {
	if a.TerminationGracePeriodSeconds == 0 {
		return nil
	}
	return []string{
		fmt.Sprintf("terminationGracePeriodSeconds: %d", a.TerminationGracePeriodSeconds),
		fmt.Sprintf("lifecycle: {preStop: {sleep: {seconds: %d}}}", a.PreStopSleepSeconds),
	}
}
