package apiserverproxy

import (
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Script returns the fault of a request. It is called concurrently.
type Script func(Request) Fault

// Rule is a rule of [Rules].
type Rule struct {
	// Verb, Resource and Name select requests by the fields of [Request]. An empty field selects all.
	Verb, Resource, Name string
	// Times is how often the rule applies to each combination of verb, resource and object; 0: always.
	Times int
	// Fault is the fault of the selected requests.
	Fault Fault
}

// Rules returns a script that applies the first rule that matches the request and is not used up. If there is none,
// the request has no fault. A rule is used up when it has been applied Times times, counted separately for each
// combination of verb, resource and object.
func Rules(rules ...Rule) Script {
	type key struct { // what Times counts separately
		rule                            int
		verb, resource, namespace, name string
	}
	var mu sync.Mutex
	counts := map[key]int{}
	return func(r Request) Fault {
		mu.Lock()
		defer mu.Unlock()
		for i, rule := range rules {
			if !rule.matches(r) {
				continue
			}
			k := key{rule: i, verb: r.Verb, resource: r.Resource, namespace: r.Namespace, name: r.Name}
			counts[k]++
			isUsedUp := rule.Times != 0 && counts[k] > rule.Times
			if !isUsedUp {
				return rule.Fault
			}
		}
		return Fault{}
	}
}

// matches reports whether each field of the rule is empty or that of the request.
func (r Rule) matches(request Request) bool {
	isEmptyOr := func(field, value string) bool { return field == "" || field == value }
	return isEmptyOr(r.Verb, request.Verb) && isEmptyOr(r.Resource, request.Resource) && isEmptyOr(r.Name, request.Name)
}

// Always returns a script that applies the same fault to every request.
func Always(fault Fault) Script { return func(Request) Fault { return fault } }

// Limit returns a script that allows perSecond requests per second, with bursts of the same size, and rejects
// the others with 429. retryAfter is the RetryAfter of the [Fault].
func Limit(perSecond int, retryAfter time.Duration) Script {
	limiter := rate.NewLimiter(rate.Limit(perSecond), perSecond)
	return func(Request) Fault {
		if limiter.Allow() {
			return Fault{}
		}
		return Fault{Status: http.StatusTooManyRequests, RetryAfter: retryAfter}
	}
}
