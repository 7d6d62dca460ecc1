package shutdown

// EarlierDrains is how many drains are kept whose pods may still end. Without Run it is 0.
func (m *Manager) EarlierDrains() (n int) {
	m.inbox.postAndWait(func(l *loop) { n = len(l.earlier) })
	return n
}

// UntoldDrains is how many drains are kept because of final statuses that the API server has
// not acknowledged, that of the shutdown under way among them. Without Run it is 0.
func (m *Manager) UnacknowledgedDrains() (n int) {
	m.inbox.postAndWait(func(l *loop) { n = len(l.unacknowledged) })
	return n
}
