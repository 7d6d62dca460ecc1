package unixsocket

import "time"

// SetIdle changes idleTimeout.
func (s *Source) SetIdle(idle time.Duration) { s.idleTimeout = idle }

// LookInterval is how often the session checks its socket.
const LookInterval = checkInterval
