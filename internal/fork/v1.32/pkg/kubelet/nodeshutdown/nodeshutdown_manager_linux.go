package nodeshutdown

// managerImpl stands in for the kubelet's manager.
type managerImpl struct{ managerStub }

// NewManager returns kubegrace's manager if the gate is on, and otherwise the kubelet's, which is a stand-in here.
func NewManager(conf *Config) Manager {
	if kubegraceEnabled() {
		return newKubegraceManager(conf)
	}
	return &managerImpl{}
}
