package criruntime

import "google.golang.org/grpc"

// Conn returns the connection, for CRI calls of a kubelet.
func (r *Runtime) Conn() *grpc.ClientConn { return r.conn }

// Streams reports whether the runtime has streamed all lists so far.
func (r *Runtime) Streams() bool { return !r.usesUnary.Load() }
