package embedded

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// ScriptPrefix and the name of a container are the key of the annotation with the container's script.
const ScriptPrefix = "node.kubegrace.dev/script."

// script says how a container reacts to its stop.
type script struct {
	ExitAfterTerm metav1.Duration `json:"exitAfterTerm"`
	IgnoreTerm    bool            `json:"ignoreTerm"`
	ExecTakes     metav1.Duration `json:"execTakes"`
}

// scriptOf returns the script of a container. Without an annotation it is the zero value: the container exits
// at once after its stop signal.
func scriptOf(pod *v1.Pod, container string) (lifecycletest.Script, error) {
	var s script
	key := ScriptPrefix + container
	err := yaml.UnmarshalStrict([]byte(pod.Annotations[key]), &s)
	if err == nil && min(s.ExitAfterTerm.Duration, s.ExecTakes.Duration) < 0 {
		err = errors.New("a time must not be negative")
	}
	if err != nil {
		return lifecycletest.Script{}, fmt.Errorf("pod %s/%s: annotation %s: %w", pod.Namespace, pod.Name, key, err)
	}
	return lifecycletest.Script{ExitAfterTerm: s.ExitAfterTerm.Duration, IgnoreTerm: s.IgnoreTerm, Exec: s.exec}, nil
}

// exec simulates a command that takes ExecTakes. The command fails if ctx ends earlier.
func (s script) exec(ctx context.Context, _ []string) ([]byte, error) {
	return nil, times.Sleep(ctx, s.ExecTakes.Duration)
}
