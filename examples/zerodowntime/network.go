package main

import (
	"context"
	"net"
)

// network connects the clients, the load balancer and the containers. The program uses [loopbackNetwork], and the
// tests use pipes.
type network struct {
	listen func(context.Context) (net.Listener, error) // at a free address
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

// loopbackNetwork returns the network of this machine, with servers at 127.0.0.1.
func loopbackNetwork() network {
	return network{
		listen: func(ctx context.Context) (net.Listener, error) {
			return (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		},
		dial: (&net.Dialer{}).DialContext,
	}
}
