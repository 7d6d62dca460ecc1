package shutdown

// EarlierDrains returns the number of kept drains whose pods may still end. It is 0 outside Run.
func (m *Manager) EarlierDrains() (n int) {
	m.inbox.postAndWait(func(l *loop) { n = len(l.earlier) })
	return n
}

// UnacknowledgedDrains returns the number of drains that are kept because of unacknowledged final
// statuses, with the drain that is under way. It is 0 outside Run.
func (m *Manager) UnacknowledgedDrains() (n int) {
	m.inbox.postAndWait(func(l *loop) { n = len(l.unacknowledged) })
	return n
}
