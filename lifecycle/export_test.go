package lifecycle

// Pods returns the number of pods of which something is remembered.
func (tr *Terminator) Pods() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return len(tr.pods)
}
