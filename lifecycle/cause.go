package lifecycle

// Cause is why a hook, a wait or a stop was ended before its own end. It is an
// error, to be had with context.Cause from a hook's context, and a bounded
// metric label.
type Cause string

const (
	// GraceSpent means that the time of the pod was used up.
	GraceSpent Cause = "GraceSpent"
	// Shortened means that a smaller grace period came in while terminating, and
	// that it was used up.
	Shortened Cause = "Shortened"
	// ContainerExited means that the container ended by itself. Only sleeps end so.
	ContainerExited Cause = "ContainerExited"
	// AgentStopping means that [Terminator.Close] was called.
	AgentStopping Cause = "AgentStopping"
)

// Error makes a Cause an error: its text is its label.
func (c Cause) Error() string { return string(c) }
