//go:build windows

package nodeshutdown

// NewManager returns the kubelet's manager for this system.
func NewManager(*Config) Manager { return managerStub{} }
