package lifecycle

// Outcomes has all outcomes except "", from best to worst.
var Outcomes = outcomes()

// Pods returns the number of pods that the terminator keeps.
func (tr *Terminator) Pods() int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return len(tr.pods)
}
