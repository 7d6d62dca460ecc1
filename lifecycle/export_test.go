package lifecycle

// Tables returns the number of pods for which the terminator knows a life.
func (tr *Terminator) Tables() (n int) {
	for i := range tr.shards {
		s := &tr.shards[i]
		s.mu.Lock()
		n += len(s.lives)
		s.mu.Unlock()
	}
	return n
}
