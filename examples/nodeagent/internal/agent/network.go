package agent

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// hostNetwork returns the IP of every pod: all pods use the network of the host.
func hostNetwork(context.Context, *v1.Pod) (string, error) { return "127.0.0.1", nil }
