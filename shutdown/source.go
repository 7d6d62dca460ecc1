package shutdown

import "github.com/kubegrace/kubegrace/shutdown/source"

// Kind is [source.Kind]: what the host is going to do.
type Kind = source.Kind

// The kinds are those of package source.
const (
	KindUnknown    = source.KindUnknown
	KindPoweroff   = source.KindPoweroff
	KindReboot     = source.KindReboot
	KindHalt       = source.KindHalt
	KindKexec      = source.KindKexec
	KindSoftReboot = source.KindSoftReboot
)

// Event is [source.Event]: it announces or cancels a shutdown of the host.
type Event = source.Event

// Source is [source.Source]: a host that announces its shutdown and can be delayed. If it is a
// [source.Adopter] too, the manager adopts the lock of a previous agent from it.
type Source = source.Source

// Session is [source.Session]: a connection to a host.
type Session = source.Session

// DelayCappedError is [source.DelayCappedError]: the host waits for less than it was asked for.
type DelayCappedError = source.DelayCappedError
