package nodeshutdown

// managerImpl is the kubelet's.
type managerImpl struct{ managerStub }

// NewManager returns the manager of this system.
func NewManager(conf *Config) Manager {
	if kubegraceEnabled() {
		return newKubegraceManager(conf)
	}
	return &managerImpl{}
}
