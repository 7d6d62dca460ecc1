package lifecycle

// Tables is how many pods a terminator knows something of.
func (tr *Terminator) Tables() (n int) {
	for i := range tr.shards {
		s := &tr.shards[i]
		s.mu.Lock()
		n += len(s.pods)
		s.mu.Unlock()
	}
	return n
}
