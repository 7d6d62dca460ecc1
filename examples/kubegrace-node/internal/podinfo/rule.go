package podinfo

import (
	"path"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// nodeCritical is the priority of the class system-node-critical.
const nodeCritical = 2000001000

// Rule gives a priority to pods whose namespace and name match, if no source has told about them.
type Rule struct {
	Namespace, Name string // patterns as for path.Match
	Priority        int32
}

// ParseRule parses NAMESPACE=PRIORITY or NAMESPACE/NAME=PRIORITY, where * stands for any text.
func ParseRule(text string) (Rule, error) {
	pattern, number, _ := strings.Cut(text, "=")
	namespace, name, named := strings.Cut(pattern, "/")
	if !named {
		name = "*"
	}
	priority, err := strconv.ParseInt(number, 10, 32)
	_, namespaceErr := path.Match(namespace, "")
	_, nameErr := path.Match(name, "")
	if err != nil || namespaceErr != nil || nameErr != nil || namespace == "" {
		return Rule{}, field.Invalid(field.NewPath("--priority"), text, "must be NAMESPACE=PRIORITY or NAMESPACE/NAME=PRIORITY, such as ingress/*=1000")
	}
	return Rule{Namespace: namespace, Name: name, Priority: int32(priority)}, nil
}

// matches reports whether the rule is for a pod.
func (r Rule) matches(pod *v1.Pod) bool {
	namespaceMatches, _ := path.Match(r.Namespace, pod.Namespace) // ParseRule has checked the patterns
	nameMatches, _ := path.Match(r.Name, pod.Name)
	return namespaceMatches && nameMatches
}

// priorityOf returns the priority of a pod that no source has told about, and where it comes from. The first
// rule that matches decides. Without one the priority is guessed: pods of kube-system and pods in the host's
// network get a high priority and so stop last, because other pods may need them, for example for their
// network; all other pods get 0.
func priorityOf(pod *v1.Pod, rules []Rule) (priority int32, source string) {
	for _, rule := range rules {
		if rule.matches(pod) {
			return rule.Priority, FromRule
		}
	}
	if pod.Namespace == "kube-system" || pod.Spec.HostNetwork {
		return nodeCritical, Guessed
	}
	return 0, Guessed
}
