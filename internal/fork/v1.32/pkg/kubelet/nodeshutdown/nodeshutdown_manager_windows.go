//go:build windows

package nodeshutdown

// NewManager returns the manager of this system, which is the kubelet's.
func NewManager(*Config) Manager { return managerStub{} }
