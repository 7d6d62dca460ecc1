package lifecycle

// Termination is one pod's termination, under way or ended.
type Termination struct{}
