package unixsocket

import "time"

// SetIdle changes how long a connection that has announced nothing may take for a line.
func (s *Source) SetIdle(idle time.Duration) { s.idleTimeout = idle }

// LookInterval is the interval in which the session checks its socket.
const LookInterval = checkInterval
