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

// Rows is the explanation as the rows of a table without a header: the rule, the
// field it looked at ("" if none), its seconds ("not set" if it had none to offer),
// and "yes" or "no" for whether it applied. The last row is the result: "Result",
// "", the seconds, and "".
func (e Explanation) Rows() [][]string {
	rows := make([][]string, 0, len(e.Steps)+1)
	for _, step := range e.Steps {
		value, applied := "not set", "no"
		if step.Set {
			value = decimal(step.Value)
		}
		if step.Applied {
			applied = "yes"
		}
		rows = append(rows, []string{string(step.Rule), step.Field, value, applied})
	}
	return append(rows, []string{"Result", "", decimal(e.Seconds), ""})
}

// clause is what the step has to say in a sentence, "" for nothing. before is the
// seconds that the step found, nil if none had applied.
func (s Step) clause(before *int64) string {
	switch s.Rule {
	case RuleDeletion, RuleStartupProbe, RuleLivenessProbe, RuleSpec, RuleOverride, RuleOptions:
		return s.fieldClause(before)
	default:
	}
	switch {
	case s.Applied:
		return s.constantClause()
	case s.Rule == RuleEvictionMaximum:
		return "the eviction maximum of " + decimal(s.Value) + " defers to the pod"
	default:
		return ""
	}
}

// fieldClause says what the step's field holds and, if that is not the whole
// story, what came of it.
func (s Step) fieldClause(before *int64) string {
	name := s.Field
	if s.Rule == RuleOverride {
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
	case s.Rule == RuleStartupProbe || s.Rule == RuleLivenessProbe:
		return name + " of " + value + " needs a grace in the pod's spec beside it"
	default:
		return name + " is no shorter with " + value
	}
}

// constantClause says why the step's own seconds applied.
func (s Step) constantClause() string {
	value := decimal(s.Value)
	switch s.Rule {
	case RuleCurrent:
		return "the pod was given " + value + " s before"
	case RuleShrinksOnly:
		return "a grace period only ever shrinks"
	case RulePodMinimum:
		return "a pod gets at least " + value + " s"
	case RuleContainerMinimum:
		return "a container without a grace period gets " + value + " s"
	case RuleNoOptions:
		return "there are no delete options"
	case RuleNoGrace:
		return "a delete without a grace period is immediate"
	case RuleUnscheduled:
		return "spec.nodeName is empty"
	case RuleFinished:
		return "status.phase says that the pod has finished"
	case RuleNegative:
		return "a negative grace period becomes " + value
	case RuleHardEviction:
		return "a hard eviction gives " + value + " s"
	case RuleEvictionMaximum:
		return "the eviction maximum is " + value
	case RuleDefault:
		return "the default is " + value
	case RuleBucket:
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
