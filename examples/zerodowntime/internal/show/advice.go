package show

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/rollout"
)

// Advice is what to set for one kind of service.
type Advice struct {
	// For names the kind of service.
	For string `json:"for"`
	// PreStopSleepSeconds and TerminationGracePeriodSeconds are the least values with which no
	// request of the measured service would have failed; 0: the results do not show a value.
	PreStopSleepSeconds           int64 `json:"preStopSleepSeconds,omitempty"`
	TerminationGracePeriodSeconds int64 `json:"terminationGracePeriodSeconds,omitempty"`
	// Why has the measured figures that lead to the values.
	Why string `json:"why"`
}

// Advise returns what a user should set, by results that were measured with a delay of the
// proxy. A kind of service of which no scenario was measured is left out.
func Advise(results []rollout.Result, delay time.Duration) []Advice {
	byName := map[string]rollout.Result{}
	for _, r := range results {
		byName[r.Scenario] = r
	}
	advice := []Advice{}
	compare := func(kind, a, b string, advise func(a, b rollout.Result) Advice) {
		first, haveFirst := byName[a]
		second, haveSecond := byName[b]
		if !haveFirst && !haveSecond {
			return
		}
		compared := Advice{Why: fmt.Sprintf("Not measured: that needs the scenarios %s and %s.", a, b)}
		if haveFirst && haveSecond {
			compared = advise(first, second)
		}
		compared.For = kind
		advice = append(advice, compared)
	}
	compare("web servers", rollout.NoSleep, rollout.Sleep, func(noSleep, sleep rollout.Result) Advice { return forWeb(noSleep, sleep, delay) })
	compare("workers with long tasks", rollout.LongRequests, rollout.ShortGrace, forTasks)
	compare("websockets", rollout.WebsocketsCut, rollout.WebsocketsDrain, forWebsockets)
	return advice
}

// forWeb compares short requests to pods without and with a preStop sleep.
func forWeb(noSleep, sleep rollout.Result, delay time.Duration) Advice {
	if noSleep.Requests.Failed() == 0 {
		return Advice{Why: fmt.Sprintf("Without a sleep none of %s failed: the proxy, %s late, did not send any to a pod that had stopped listening. "+
			"Measure with the delay of your own load balancer (--delay).", requests(noSleep), delay)}
	}
	why := fmt.Sprintf("Without a sleep %d of %s failed. On SIGTERM a server stops listening, and the proxy, which learns of it %s late, "+
		"sent requests there until %.1f s after it.", noSleep.Requests.Failed(), requests(noSleep), delay, noSleep.LastRefusalSeconds)
	if sleep.Requests.Failed() > 0 {
		return Advice{Why: why + fmt.Sprintf(" With sleep: %d still %d of %s failed: the sleep must be longer than the proxy is late.",
			sleep.PreStopSleepSeconds, sleep.Requests.Failed(), requests(sleep))}
	}
	sleepSeconds := wholeSecondsAbove(noSleep.LastRefusalSeconds)
	grace := sleepSeconds + wholeSecondsAbove(sleep.LongestDrainSeconds()) + 1
	return Advice{
		PreStopSleepSeconds: sleepSeconds, TerminationGracePeriodSeconds: grace,
		Why: why + fmt.Sprintf(" With sleep: %d none of %s failed. The sleep has to outlast the %.1f s, so %d s is the least; the grace is the sleep, "+
			"the %.1f s that the slowest pod needed after SIGTERM, and a second to spare.",
			sleep.PreStopSleepSeconds, requests(sleep), noSleep.LastRefusalSeconds, sleepSeconds, sleep.LongestDrainSeconds()),
	}
}

// forTasks compares long-running requests with enough grace and with too little.
func forTasks(enough, short rollout.Result) Advice {
	var why strings.Builder
	fmt.Fprintf(&why, "With a grace of %d s %s of %s failed; the slowest answer took %.1f s, and the slowest pod %.1f s from its delete to its exit, "+
		"sleep: %d included, because the sleep is taken from the grace.", enough.TerminationGracePeriodSeconds, none(enough.Requests.Failed()), requests(enough),
		enough.LongestAnswerSeconds, enough.LongestStopSeconds(), enough.PreStopSleepSeconds)
	fmt.Fprintf(&why, " With the grace cut to %d s %d of %d pods were killed and %s of %s failed.",
		short.DeleteGracePeriodSeconds, short.Killed(), len(short.Pods), none(short.Requests.Failed()), requests(short))
	if short.Requests.Failed() == 0 {
		why.WriteString(" The tasks were short enough even for that: measure with your own (--task, --short-grace).")
	}
	if enough.Requests.Failed() > 0 {
		why.WriteString(" The grace must be longer than the sleep and the longest task together.")
		return Advice{Why: why.String()}
	}
	why.WriteString(" So the grace has to be longer than the slowest pod took, and who deletes pods must not shorten it (kubectl delete --grace-period, a node's shutdownGracePeriod).")
	return Advice{PreStopSleepSeconds: enough.PreStopSleepSeconds, TerminationGracePeriodSeconds: wholeSecondsAbove(enough.LongestStopSeconds()) + 1, Why: why.String()}
}

// forWebsockets compares websockets without and with a close frame.
func forWebsockets(cut, drained rollout.Result) Advice {
	why := fmt.Sprintf("A preStop sleep keeps new connections away and moves none of the old ones: with sleep: %d, %s of the websockets broke when their servers ended. "+
		"Where the server closes each with a close frame (1001) after SIGTERM, %s broke and %d moved to another pod; the slowest pod needed %.1f s for that.",
		cut.PreStopSleepSeconds, none(cut.Requests.Failed()), none(drained.Requests.Failed()), drained.Requests.Moved, drained.LongestDrainSeconds())
	if drained.Requests.Failed() > 0 {
		return Advice{Why: why}
	}
	return Advice{
		PreStopSleepSeconds:           drained.PreStopSleepSeconds,
		TerminationGracePeriodSeconds: wholeSecondsAbove(drained.LongestStopSeconds()) + 1,
		Why: why + " So the server has to close them, spread over a few seconds so that not all clients come back at once, " +
			"and the grace has to cover sleep and closing.",
	}
}

// wholeSecondsAbove returns the least number of whole seconds that is more than s.
func wholeSecondsAbove(s float64) int64 { return int64(math.Floor(s)) + 1 }

// requests returns the number of requests of a result and their kind.
func requests(r rollout.Result) string {
	kind := "requests"
	if r.Load == rollout.Tasks {
		kind = "long requests"
	}
	return fmt.Sprintf("%d %s", r.Requests.Answered+r.Requests.Failed(), kind)
}

// none returns a number as a word of a sentence: "none" for 0.
func none(n int) string {
	if n == 0 {
		return "none"
	}
	return strconv.Itoa(n)
}

// manifest returns the lines for a pod's manifest; nil if there is no value to advise.
func (a Advice) manifest() []string {
	if a.TerminationGracePeriodSeconds == 0 {
		return nil
	}
	return []string{
		fmt.Sprintf("terminationGracePeriodSeconds: %d", a.TerminationGracePeriodSeconds),
		fmt.Sprintf("lifecycle: {preStop: {sleep: {seconds: %d}}}", a.PreStopSleepSeconds),
	}
}
