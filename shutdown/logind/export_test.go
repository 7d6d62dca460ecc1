package logind

import "time"

// Times has the timeout of a reload, and the intervals of polling and of verifying locks. 0: the default.
type Times struct {
	Reload, Poll, Verify time.Duration
}

// With returns the options with other times.
func (o Options) With(t Times) Options {
	o.times = times{reload: t.Reload, poll: t.Poll, verify: t.Verify}
	return o
}
