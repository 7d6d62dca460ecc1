package apiserver

import (
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/manifest"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/podruntime"
)

// The annotations of a static pod: the kubelet's ConfigSourceAnnotationKey,
// ConfigHashAnnotationKey and ConfigFirstSeenAnnotationKey. The one of its mirror is
// v1.MirrorPodAnnotationKey.
const (
	sourceAnnotation = "kubernetes.io/config.source"
	hashAnnotation   = podruntime.HashAnnotation
	seenAnnotation   = "kubernetes.io/config.seen"

	sourceFile = "file"
)

// StaticPods makes of the pods of manifests what the kubelet's file source makes of
// them on a node that has an API server (its applyDefaults): the node's name is
// appended to theirs, they are bound to the node, tolerate all that would evict them,
// and have the annotations of a static pod. seen is when they were read. The pods
// are copied; their UIDs stay. The error joins one for each name that is too long.
func StaticPods(pods []*v1.Pod, node string, seen time.Time) ([]*v1.Pod, error) {
	static, errs := make([]*v1.Pod, len(pods)), make([]error, len(pods))
	for i, pod := range pods {
		static[i], errs[i] = staticPod(pod.DeepCopy(), node, seen)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return static, nil
}

func staticPod(pod *v1.Pod, node string, seen time.Time) (*v1.Pod, error) {
	name := pod.Namespace + "/" + pod.Name
	pod.Name += "-" + strings.ToLower(node)
	if problems := validation.IsDNS1123Subdomain(pod.Name); len(problems) > 0 {
		err := field.Invalid(field.NewPath("metadata", "name"), pod.Name, strings.Join(problems, ", "))
		return nil, fmt.Errorf("pod %s, with the name of its node: %w", name, err)
	}
	pod.Spec.NodeName = node
	tolerateEviction(&pod.Spec)
	hash, err := manifest.Hash(pod)
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w", name, err)
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, sourceAnnotation, sourceFile)
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, hashAnnotation, hash)
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, seenAnnotation, seen.Format(time.RFC3339Nano))
	return pod, nil
}

// tolerateEviction keeps the taints of a node that is not ready from having the
// mirror deleted.
func tolerateEviction(spec *v1.PodSpec) {
	spec.Tolerations = append(spec.Tolerations, v1.Toleration{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute})
}
