// Package apistatus tells the API server what a node shutdown does to the node and
// its pods.
package apistatus
