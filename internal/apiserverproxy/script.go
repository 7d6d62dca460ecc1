package apiserverproxy

import (
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Script says what goes wrong with a request, before it is carried out; nil: nothing
// does. It is called from many goroutines at once.
type Script func(Request) Fault

// Rule is a line of [Rules].
type Rule struct {
	// Verb, Resource and Name choose requests, as [Request] has them: a resource may be
	// "pods" or "pods/status". Each that is empty stands for all.
	Verb, Resource, Name string
	// Times is how often the rule holds for each verb, resource and object; 0: always.
	Times int
	// Fault is what goes wrong.
	Fault Fault
}

// Rules gives a request the fault of the first rule that holds for it, and none if
// none does.
func Rules(rules ...Rule) Script {
	type key struct {
		rule                            int
		verb, resource, namespace, name string
	}
	var mu sync.Mutex
	times := map[key]int{}
	return func(r Request) Fault {
		mu.Lock()
		defer mu.Unlock()
		for i, rule := range rules {
			if !rule.chooses(r) {
				continue
			}
			of := key{i, r.Verb, r.Resource, r.Namespace, r.Name}
			times[of]++
			if rule.Times == 0 || times[of] <= rule.Times {
				return rule.Fault
			}
		}
		return Fault{}
	}
}

func (r Rule) chooses(request Request) bool {
	return (r.Verb == "" || r.Verb == request.Verb) &&
		(r.Resource == "" || r.Resource == request.Resource) &&
		(r.Name == "" || r.Name == request.Name)
}

// Always gives every request the same fault.
func Always(fault Fault) Script { return func(Request) Fault { return fault } }

// Limit answers 429 to what is more than a number of requests in a second, of which
// all may come at once. retryAfter is as in [Fault].
func Limit(perSecond int, retryAfter time.Duration) Script {
	limiter := rate.NewLimiter(rate.Limit(perSecond), perSecond)
	return func(Request) Fault {
		if limiter.Allow() {
			return Fault{}
		}
		return Fault{Status: http.StatusTooManyRequests, RetryAfter: retryAfter}
	}
}
