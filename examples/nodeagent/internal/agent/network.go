package agent

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

// hostNetwork is the address of every pod: all use the network of the host.
func hostNetwork(context.Context, *v1.Pod) (string, error) { return "127.0.0.1", nil }
