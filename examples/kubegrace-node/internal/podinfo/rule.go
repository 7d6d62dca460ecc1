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

// Rule is the priority of the pods that nobody has told about and whose names fit.
type Rule struct {
	Namespace, Name string // patterns of path.Match
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

func (r Rule) fits(pod *v1.Pod) bool {
	namespace, _ := path.Match(r.Namespace, pod.Namespace) // ParseRule has checked the patterns
	name, _ := path.Match(r.Name, pod.Name)
	return namespace && name
}

// priorityOf returns the priority of a pod that nobody has told about: that of the first rule
// that fits; without one, what others may need ends last: the pods of kube-system and those in the
// network of the host.
func priorityOf(pod *v1.Pod, rules []Rule) (priority int32, source string) {
	for _, rule := range rules {
		if rule.fits(pod) {
			return rule.Priority, FromRule
		}
	}
	if pod.Namespace == "kube-system" || pod.Spec.HostNetwork {
		return nodeCritical, Guessed
	}
	return 0, Guessed
}
