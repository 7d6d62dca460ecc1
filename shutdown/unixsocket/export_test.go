package unixsocket

import "time"

// SetIdle changes how long a connection may take for its first line.
func (s *Source) SetIdle(idle time.Duration) { s.idleTimeout = idle }

// LookInterval is how often the socket is looked for.
const LookInterval = checkInterval
