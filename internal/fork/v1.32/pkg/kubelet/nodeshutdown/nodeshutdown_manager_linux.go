package nodeshutdown

// managerImpl is the kubelet's manager.
type managerImpl struct{ managerStub }

// NewManager returns the manager for this system.
func NewManager(conf *Config) Manager {
	if kubegraceEnabled() {
		return newKubegraceManager(conf)
	}
	return &managerImpl{}
}
