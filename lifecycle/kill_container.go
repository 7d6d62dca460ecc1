package lifecycle

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// refuseContainer returns the error for a container that cannot be stopped alone.
func (s *settings) refuseContainer(c Container) error {
	switch {
	case s.Pods != nil:
		return fmt.Errorf("failed to stop container %q alone: %w", c.Name, ErrUnit)
	case c.ID == "":
		return unknownError(c.Name)
	default:
		return nil
	}
}

// killMessage returns the kubelet's message for the Killing event of a container whose
// probe has failed, "" for other reasons.
func killMessage(pod *v1.Pod, name string, reason graceperiod.KillReason) string {
	var probe string
	switch reason {
	case graceperiod.ReasonLivenessProbe:
		probe = "liveness"
	case graceperiod.ReasonStartupProbe:
		probe = "startup"
	default:
		return ""
	}
	_, role := findContainer(pod, name)
	if role >= roleFirstSidecar {
		return fmt.Sprintf("Init container %s failed %s probe", name, probe)
	}
	message := fmt.Sprintf("Container %s failed %s probe", name, probe)
	if pod.Spec.RestartPolicy == v1.RestartPolicyNever {
		return message
	}
	return message + ", will be restarted"
}
