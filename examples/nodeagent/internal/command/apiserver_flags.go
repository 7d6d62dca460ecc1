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

// otherKinds is the key of --pod-policy for all kinds of shutdown without an own entry.
const otherKinds = "default"

// kinds returns the keys of --pod-policy.
func kinds() []string {
	return []string{
		string(shutdown.KindPoweroff), string(shutdown.KindReboot), string(shutdown.KindHalt),
		string(shutdown.KindKexec), string(shutdown.KindSoftReboot), otherKinds,
	}
}

// policies returns the values of --pod-policy.
func policies() []string {
	return []string{string(shutdown.PolicySetTerminal), string(shutdown.PolicyLeaveAsIs), string(shutdown.PolicyDelete)}
}

func podPolicyUsage() string {
	return fmt.Sprintf("with --kubeconfig, what happens to the status of pods, as `KIND=POLICY,...`: kinds of a shutdown are %s (all others); policies are %s. "+
		"A shutdown of unknown kind counts as poweroff; a kind without a policy has %s",
		strings.Join(kinds(), ", "), strings.Join(policies(), ", "), shutdown.PolicySetTerminal)
}

// validateAPIServer returns the errors of the flags that concern an API server.
func (f *flags) validateAPIServer() field.ErrorList {
	if f.kubeconfig == "" {
		return f.needKubeconfig()
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

// needKubeconfig returns an error for each flag that has no effect without --kubeconfig.
func (f *flags) needKubeconfig() field.ErrorList {
	const reason = "is only for --kubeconfig"
	var errs field.ErrorList
	if f.nodeName != "" {
		errs = append(errs, field.Invalid(field.NewPath("--node-name"), f.nodeName, reason))
	}
	for _, kind := range slices.Sorted(maps.Keys(f.podPolicy)) {
		errs = append(errs, field.Invalid(field.NewPath("--pod-policy"), kind+"="+f.podPolicy[kind], reason))
	}
	return errs
}

// policy returns what happens to the statuses of the pods in a shutdown of a kind.
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

// node returns the name of the Node object: --node-name, or the host name in lower case.
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
