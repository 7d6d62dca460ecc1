package shutdown

import "time"

// InhibitorState is what a manager does with the inhibitor lock of its host.
type InhibitorState string

const (
	// InhibitorOff means that no host is watched. [Inhibitor.Off] says why.
	InhibitorOff InhibitorState = "Off"
	// InhibitorTrying means that the lock is wanted but not held.
	InhibitorTrying InhibitorState = "Trying"
	// InhibitorHeld means that the lock is held: the host waits, unless Err says that the session
	// was lost.
	InhibitorHeld InhibitorState = "Held"
	// InhibitorAdopted means that the lock is held and was taken during a shutdown: the host had
	// kept it for a previous agent.
	InhibitorAdopted InhibitorState = "Adopted"
	// InhibitorLetGo means that no lock is held because a shutdown is under way or Run is over.
	InhibitorLetGo InhibitorState = "LetGo"
)

// Inhibitor is the state of the inhibitor lock, as [Manager.Inhibitor] returns it.
type Inhibitor struct {
	State     InhibitorState
	Off       string        // why no host is watched; "" if one is
	Held      bool          // a lock is held: the host waits, unless Err says that the session was lost
	Requested time.Duration // the delay that the host was asked for; 0 before that
	Granted   time.Duration // how long the host waits; 0 before it has answered
	// Err is the reason why the lock is not held as wanted: the host cannot be reached, it
	// refuses, or it waits for so much less than asked that a bucket loses time (a
	// *[DelayCappedError]). Nil if all is well or no host is watched.
	Err error
}
