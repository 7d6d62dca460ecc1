package criruntime

import "google.golang.org/grpc"

// Conn returns the connection, for CRI calls of a kubelet.
func (r *Runtime) Conn() *grpc.ClientConn { return r.conn }

// UsesStreaming reports whether r requests lists with CRI's streaming methods: until the container runtime answers that it does
// not implement one of them.
func (r *Runtime) UsesStreaming() bool { return !r.usesUnary.Load() }
