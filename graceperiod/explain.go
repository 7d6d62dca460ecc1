package graceperiod

import (
	"strconv"
	"strings"
)

// Explanation is a grace and how it came about.
type Explanation struct {
	// Seconds is what the plain function gives for the same parameters.
	Seconds int64
	// Steps are all rules that were asked, in order.
	Steps []Step
}

// String is the explanation in one sentence, fit for a bug report or a log line:
//
//	The grace period is 10 s because metadata.deletionGracePeriodSeconds is not set
//	and spec.containers[0].livenessProbe.terminationGracePeriodSeconds is 10.
//
// (without the line break). It names every field that was read and every constant
// that applied; a constant that did not is left out.
func (e Explanation) String() string {
	sentence := "The grace period is " + decimal(e.Seconds) + " s"
	var because []string
	var before *int64 // what applied last
	for _, step := range e.Steps {
		if clause := step.clause(before); clause != "" {
			because = append(because, clause)
		}
		if step.Applied {
			before = &step.Value
		}
	}
	if len(because) > 0 {
		sentence += " because " + enumerate(because)
	}
	return sentence + "."
}

// clause is what the step has to say in a sentence, "" for nothing. before is the
// seconds that the step found, nil if none had applied.
func (s Step) clause(before *int64) string {
	switch s.Rule {
	case ruleDeletion, ruleStartupProbe, ruleLivenessProbe, ruleSpec, ruleOverride, ruleOptions:
		return s.fieldClause(before)
	default:
	}
	switch {
	case s.Applied:
		return s.constantClause()
	case s.Rule == ruleEvictionMaximum:
		return "the eviction maximum of " + decimal(s.Value) + " defers to the pod"
	default:
		return ""
	}
}

// fieldClause says what the step's field holds and, if that is not the whole
// story, what came of it.
func (s Step) fieldClause(before *int64) string {
	name := s.Field
	if s.Rule == ruleOverride {
		name = "the override"
	}
	value := decimal(s.Value)
	switch {
	case !s.Set:
		return name + " is not set"
	case s.Applied && before != nil && s.Value < *before:
		return name + " is shorter with " + value
	case s.Applied:
		return name + " is " + value
	case s.Rule == ruleStartupProbe || s.Rule == ruleLivenessProbe:
		return name + " of " + value + " needs a grace in the pod's spec beside it"
	default:
		return name + " is no shorter with " + value
	}
}

// constantClause says why the step's own seconds applied.
func (s Step) constantClause() string {
	value := decimal(s.Value)
	switch s.Rule {
	case ruleCurrent:
		return "the pod was given " + value + " s before"
	case ruleShrinksOnly:
		return "a grace period only ever shrinks"
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
	case ruleBucket:
		return "the bucket has " + value + " s left"
	default:
		return string(s.Rule) + " gives " + value
	}
}

// decimal is a number of seconds in digits.
func decimal(seconds int64) string {
	return strconv.FormatInt(seconds, 10)
}

// enumerate joins clauses as prose does; there is at least one.
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
