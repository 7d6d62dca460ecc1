// Package graceperiod says how long a pod or a container is given to end, and
// why: the answers of the kubelet and of the API server as plain arithmetic.
package graceperiod
