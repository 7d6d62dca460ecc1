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
// ConfigHashAnnotationKey and ConfigFirstSeenAnnotationKey. Its mirror has
// v1.MirrorPodAnnotationKey too.
const (
	sourceAnnotation = "kubernetes.io/config.source"
	hashAnnotation   = podruntime.HashAnnotation
	seenAnnotation   = "kubernetes.io/config.seen"

	sourceFile = "file"
)

// StaticPods turns the pods of manifests into the static pods of a node with an API
// server, as the kubelet's file source does (applyDefaults): it appends the name of the
// node to theirs, binds them to the node, adds a toleration against eviction by taints
// and sets the annotations of a static pod. seen is when the manifests were read. The
// pods are copied and keep their UIDs. The error joins one for each name that becomes too
// long.
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

// tolerateEviction adds a toleration for all NoExecute taints. Without it the mirror
// would be deleted when the node is not ready.
func tolerateEviction(spec *v1.PodSpec) {
	spec.Tolerations = append(spec.Tolerations, v1.Toleration{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute})
}
