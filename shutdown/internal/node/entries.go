package node

import "slices"

// Entries are the entities that the state log has: what a Node stores, and what the Node of the next agent reads.
type Entries struct {
	Shutdown *Shutdown // nil: none
	Pods     []*Pod    // each once
}

// Clone returns a copy that further Steps do not change. Timetables, and the objects and statuses of pods, are not copied:
// a Step replaces them, but never changes them.
func (e Entries) Clone() Entries {
	var c Entries
	if e.Shutdown != nil {
		s := *e.Shutdown
		s.Announced, s.Errors = slices.Clone(s.Announced), slices.Clone(s.Errors)
		c.Shutdown = &s
	}
	for _, p := range e.Pods {
		q := *p
		q.StillRanIn = slices.Clone(q.StillRanIn)
		c.Pods = append(c.Pods, &q)
	}
	return c
}
