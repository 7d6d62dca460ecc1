package graceperiod

import (
	"strconv"
	"strings"
)

// Explanation is a grace period and the rules that it results from.
type Explanation struct {
	// Seconds is the result of the For function for the same parameters.
	Seconds int64
	steps   []step // the rules that were evaluated, in order
}

// String returns the explanation as one sentence for a bug report or a log line:
//
//	The grace period is 10 s because metadata.deletionGracePeriodSeconds is not set
//	and spec.containers[0].livenessProbe.terminationGracePeriodSeconds is 10.
//
// (without the line break). It names every grace period that was read and every other rule
// that applied.
func (e Explanation) String() string {
	sentence := "The grace period is " + decimal(e.Seconds) + " s"
	var clauses []string
	var previous *int64 // the value of the last step that applied
	for _, step := range e.steps {
		if clause := step.clause(previous); clause != "" {
			clauses = append(clauses, clause)
		}
		if step.applied {
			previous = &step.value
		}
	}
	if len(clauses) > 0 {
		sentence += " because " + enumerate(clauses)
	}
	return sentence + "."
}

// clause returns the step's part of the sentence, or "" if the step says nothing of
// interest. previous is the value of the last earlier step that applied, or nil.
func (s step) clause(previous *int64) string {
	switch {
	case s.readsField():
		return s.fieldClause(previous)
	case s.applied:
		return s.constantClause()
	case s.rule == ruleEvictionMaximum: // it is negative
		return "the eviction maximum of " + decimal(s.value) + " is no limit"
	default:
		return ""
	}
}

// readsField reports whether the step read a grace period that need not be set: a field, or the override. It is then of
// interest even if the rule did not apply.
func (s step) readsField() bool {
	switch s.rule {
	case ruleDeletion, ruleStartupProbe, ruleLivenessProbe, ruleSpec, ruleOverride, ruleOptions:
		return true
	default:
		return false
	}
}

// fieldClause returns the clause of a step that reads a field: its value and, if the step
// compares it with the previous value, the result of the comparison.
func (s step) fieldClause(previous *int64) string {
	name := s.field
	if s.rule == ruleOverride {
		name = "the override"
	}
	value := decimal(s.value)
	switch {
	case !s.set:
		return name + " is not set"
	case s.applied && previous != nil && s.value < *previous:
		return name + " is shorter with " + value
	case s.applied:
		return name + " is " + value
	case s.rule == ruleStartupProbe || s.rule == ruleLivenessProbe:
		return name + " of " + value + " applies only if the pod's spec has a grace period"
	default: // it was compared with the previous value
		return name + " (" + value + ") is not shorter"
	}
}

// constantClause returns the clause of a step that applied and whose value is no field of the pod
// or the options.
func (s step) constantClause() string {
	value := decimal(s.value)
	switch s.rule {
	case ruleCurrent:
		return "the pod already has " + value + " s"
	case ruleNeverExtended:
		return "a grace period is never extended"
	case rulePodMinimum:
		return "a pod gets at least " + value + " s"
	case ruleContainerMinimum:
		return "a container without a grace period gets " + value + " s"
	case ruleNoOptions:
		return "there are no delete options"
	case ruleNoGrace:
		return "a delete without a grace period is immediate"
	case ruleUnscheduled:
		return "spec.nodeName is empty"
	case ruleFinished:
		return "status.phase says that the pod has finished"
	case ruleNegative:
		return "a negative grace period becomes " + value
	case ruleEvictionMaximum:
		return "the eviction maximum is " + value
	case ruleDefault:
		return "the default is " + value
	default: // ruleBucket
		return "the bucket has " + value + " s left"
	}
}

// decimal formats a number of seconds.
func decimal(seconds int64) string {
	return strconv.FormatInt(seconds, 10)
}

// enumerate joins clauses with commas and "and"; there is at least one.
func enumerate(clauses []string) string {
	last := len(clauses) - 1
	switch last {
	case 0:
		return clauses[0]
	case 1:
		return clauses[0] + " and " + clauses[1]
	default:
		return strings.Join(clauses[:last], ", ") + ", and " + clauses[last]
	}
}
