package shutdown

import "github.com/kubegrace/kubegrace/shutdown/source"

// Kind is [source.Kind]: what the host is going to do.
type Kind = source.Kind

const (
	// KindUnknown is [source.KindUnknown]: the source does not know.
	KindUnknown = source.KindUnknown
	// KindPoweroff is [source.KindPoweroff]: the machine is switched off.
	KindPoweroff = source.KindPoweroff
	// KindReboot is [source.KindReboot]: the machine starts again.
	KindReboot = source.KindReboot
	// KindHalt is [source.KindHalt]: the machine stops and stays switched on.
	KindHalt = source.KindHalt
	// KindKexec is [source.KindKexec]: another kernel is booted without the firmware.
	KindKexec = source.KindKexec
	// KindSoftReboot is [source.KindSoftReboot]: user space restarts under the same kernel.
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
