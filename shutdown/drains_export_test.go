package shutdown

// EarlierDrains is how many drains are kept whose pods may still end. Without Run it is 0.
func (m *Manager) EarlierDrains() (n int) {
	m.inbox.ask(func(l *loop) { n = len(l.earlier) })
	return n
}
