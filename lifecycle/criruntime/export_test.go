package criruntime

// Streams reports whether the runtime has streamed all lists so far.
func (r *Runtime) Streams() bool { return !r.unary.Load() }
