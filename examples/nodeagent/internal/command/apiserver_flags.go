package command

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubegrace/kubegrace/shutdown"
)

// otherKinds is the key of --pod-policy for the kinds that are not named.
const otherKinds = "default"

// kinds are the keys of --pod-policy.
func kinds() []string {
	return []string{
		string(shutdown.KindPoweroff), string(shutdown.KindReboot), string(shutdown.KindHalt),
		string(shutdown.KindKexec), string(shutdown.KindSoftReboot), otherKinds,
	}
}

// policies are the values of --pod-policy.
func policies() []string {
	return []string{string(shutdown.PolicySetTerminal), string(shutdown.PolicyLeaveAsIs), string(shutdown.PolicyDelete)}
}

func podPolicyUsage() string {
	return fmt.Sprintf("with --kubeconfig, what becomes of the status of pods, as `KIND=POLICY,...`: kinds of a shutdown are %s (all others); policies are %s. "+
		"A shutdown whose kind nobody tells is a poweroff; a kind without a policy has %s",
		strings.Join(kinds(), ", "), strings.Join(policies(), ", "), shutdown.PolicySetTerminal)
}

// validateAPIServer finds what is wrong with the flags that concern an API server.
func (f *flags) validateAPIServer() field.ErrorList {
	if f.kubeconfig == "" {
		return f.withoutAPIServer()
	}
	var errs field.ErrorList
	if problems := validation.IsDNS1123Subdomain(f.nodeName); f.nodeName != "" && len(problems) > 0 {
		errs = append(errs, field.Invalid(field.NewPath("--node-name"), f.nodeName, strings.Join(problems, ", ")))
	}
	for _, kind := range slices.Sorted(maps.Keys(f.podPolicy)) {
		if !slices.Contains(kinds(), kind) {
			errs = append(errs, field.NotSupported(field.NewPath("--pod-policy"), kind, kinds()))
		}
		if policy := f.podPolicy[kind]; !slices.Contains(policies(), policy) {
			errs = append(errs, field.NotSupported(field.NewPath("--pod-policy").Key(kind), policy, policies()))
		}
	}
	return errs
}

// withoutAPIServer refuses what would have no effect.
func (f *flags) withoutAPIServer() field.ErrorList {
	const needs = "is only for --kubeconfig"
	var errs field.ErrorList
	if f.nodeName != "" {
		errs = append(errs, field.Invalid(field.NewPath("--node-name"), f.nodeName, needs))
	}
	for _, kind := range slices.Sorted(maps.Keys(f.podPolicy)) {
		errs = append(errs, field.Invalid(field.NewPath("--pod-policy"), kind+"="+f.podPolicy[kind], needs))
	}
	return errs
}

// policy is what becomes of pods in a shutdown of a kind.
func (f *flags) policy(kind shutdown.Kind) shutdown.PodPolicy {
	if kind == shutdown.KindUnknown {
		kind = shutdown.KindPoweroff
	}
	for _, key := range []string{string(kind), otherKinds} {
		if policy, ok := f.podPolicy[key]; ok {
			return shutdown.PodPolicy(policy)
		}
	}
	return shutdown.PolicySetTerminal
}

// node is the name of the node's object.
func (f *flags) node() (string, error) {
	if f.nodeName != "" {
		return f.nodeName, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("--node-name is needed: %w", err)
	}
	host = strings.ToLower(host)
	if problems := validation.IsDNS1123Subdomain(host); len(problems) > 0 {
		return "", fmt.Errorf("--node-name is needed: the host name %q is not one of a node: %s", host, strings.Join(problems, ", "))
	}
	return host, nil
}
