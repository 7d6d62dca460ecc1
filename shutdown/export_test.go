package shutdown

import "time"

// SetBoot gives a manager another boot and another clock since the boot.
func (m *Manager) SetBoot(boot func() (id string, since time.Duration, err error)) { m.boot = boot }
