package logind

import "time"

// Times are the timeouts and intervals of a session. 0: the default.
type Times struct {
	Reload, Poll, Verify time.Duration
}

// With returns the options with other times.
func (o Options) With(t Times) Options {
	o.times = times{reload: t.Reload, poll: t.Poll, verify: t.Verify}
	return o
}
