package lifecycle

// Terminator terminates pods.
type Terminator struct{}
