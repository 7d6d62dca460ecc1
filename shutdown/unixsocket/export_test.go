package unixsocket

import "time"

// SetIdleTimeout changes how long a connection that has announced nothing may take for a line.
func (s *Source) SetIdleTimeout(timeout time.Duration) { s.idleTimeout = timeout }

// CheckInterval is the interval in which the session checks its socket.
const CheckInterval = checkInterval
