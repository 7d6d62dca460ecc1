package manifest

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/google/uuid"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/podruntime"
)

// sourceAnnotation marks a static pod. Its value says where the pod comes from (the
// kubelet's ConfigSourceAnnotationKey).
const sourceAnnotation = "kubernetes.io/config.source"

// setDefaults sets the defaults of the API server that a termination depends on
// (SetDefaults_PodSpec, SetDefaults_HTTPGetAction).
func setDefaults(pod *v1.Pod) {
	pod.Namespace = cmp.Or(pod.Namespace, metav1.NamespaceDefault)
	pod.Spec.RestartPolicy = cmp.Or(pod.Spec.RestartPolicy, v1.RestartPolicyAlways)
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(v1.DefaultTerminationGracePeriodSeconds))
	}
	for _, containers := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			setHookDefaults(containers[i].Lifecycle)
		}
	}
}

func setHookDefaults(hooks *v1.Lifecycle) {
	if hooks == nil {
		return
	}
	for _, hook := range []*v1.LifecycleHandler{hooks.PostStart, hooks.PreStop} {
		if hook != nil && hook.HTTPGet != nil {
			hook.HTTPGet.Path = cmp.Or(hook.HTTPGet.Path, "/")
			hook.HTTPGet.Scheme = cmp.Or(hook.HTTPGet.Scheme, v1.URISchemeHTTP)
		}
	}
}

// setStaticPodMetadata sets the annotations and the UID of a static pod. The UID depends
// on the file and the pod's name, not on the content of the manifest: when a manifest was
// edited, a restarted agent still finds the running pod and drains it.
func setStaticPodMetadata(pod *v1.Pod, file string) error {
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, sourceAnnotation, "file")
	hash, err := Hash(pod)
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, podruntime.HashAnnotation, hash)
	if pod.UID != "" {
		return nil
	}
	file, err = filepath.Abs(file)
	if err != nil {
		return fmt.Errorf("failed to derive a UID: %w", err)
	}
	id := "file:" + file + ":" + pod.Namespace + "/" + pod.Name
	pod.UID = types.UID(uuid.NewSHA1(uuid.NameSpaceURL, []byte(id)).String())
	return nil
}

// Hash returns a hash of a pod's manifest, in 32 hexadecimal digits as the kubelet's.
func Hash(pod *v1.Pod) (string, error) {
	text, err := json.Marshal(pod)
	if err != nil {
		return "", fmt.Errorf("failed to hash the manifest: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}
