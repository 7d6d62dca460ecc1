package graceperiod

// Decided returns the value and the field of the last step that applied. found is false if no step applied, or if the
// last one that applied has no value.
func (e Explanation) Decided() (seconds int64, field string, found bool) {
	for _, step := range e.steps {
		if step.applied {
			seconds, field, found = step.value, step.field, step.set
		}
	}
	return seconds, field, found
}
