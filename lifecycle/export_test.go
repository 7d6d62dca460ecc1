package lifecycle

// Tables returns the number of pods for which the terminator knows a life.
func (tr *Terminator) Tables() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return len(tr.lives)
}
