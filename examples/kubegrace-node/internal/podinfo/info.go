package podinfo

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/statefile"
)

// File is the name of the file in the state folder that has what is known of the pods.
const File = statefile.Prefix + "pods.json"

// ownersOnly is the mode of File.
const ownersOnly = 0o600

// PrioritySource is the annotation of the pods that [Info.Enrich] returns. It says where the pod's priority
// comes from: one of the values below.
const PrioritySource = "node.kubegrace.dev/priority-source"

// The values of [PrioritySource]. Guessed means that neither a source nor a rule has given the priority.
const (
	FromAPIServer = "API server"
	FromKubelet   = "kubelet"
	FromRule      = "rule"
	Guessed       = "guess"
)

// Info is what is known of the node's pods in addition to what the runtime knows. Make one with [New].
type Info struct {
	rules    []Rule
	stateDir string // "": nothing is stored

	saving sync.Mutex // held by Save, so that an older list does not replace a newer one in the file

	mu      sync.Mutex            // guards the fields below; it is not held during input and output
	known   map[types.UID]*v1.Pod // pods from the sources, by the UID that the runtime uses; a pod in the map is never changed
	changed bool                  // known has changed since the last Save
}

// New returns an Info with what the file in the state folder has. With the folder "" there is no file. If the file cannot be
// read, New returns an error and an Info that can be used.
func New(stateDir string, rules []Rule) (*Info, error) {
	info := &Info{rules: rules, stateDir: stateDir, known: map[types.UID]*v1.Pod{}}
	list, err := statefile.Load[v1.PodList](stateDir, File) // what the Save of a previous agent has stored
	if err != nil {
		return info, fmt.Errorf("priorities and sidecars of a previous agent are lost: %w", err)
	}
	for _, pod := range list.Items {
		info.Record(pod.Annotations[PrioritySource], []v1.Pod{pod})
	}
	info.changed = false // the file already has them
	return info, nil
}

// Record stores pods from a source that knows their specs: [FromAPIServer] or [FromKubelet].
func (info *Info) Record(source string, pods []v1.Pod) {
	reduced := make([]*v1.Pod, len(pods))
	for i := range pods {
		reduced[i] = reduce(&pods[i])
		reduced[i].Annotations[PrioritySource] = source
	}
	info.mu.Lock()
	defer info.mu.Unlock()
	for _, pod := range reduced {
		if !equality.Semantic.DeepEqual(info.known[pod.UID], pod) {
			info.known[pod.UID], info.changed = pod, true
		}
	}
}

// Enrich returns a pod of the runtime with what a source knows about it, or with a priority of the rules if no source
// knows the pod. The runtime's phase, addresses and grace period override the source's, because they are
// newer. Enrich may change pod.
func (info *Info) Enrich(pod *v1.Pod) *v1.Pod {
	info.mu.Lock()
	known := info.known[pod.UID]
	info.mu.Unlock()
	if known == nil {
		priority, origin := priorityOf(pod, info.rules)
		pod.Spec.Priority = &priority
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, PrioritySource, origin)
		return pod
	}
	complete := known.DeepCopy()
	// The runtime knows a static pod by its own name; known may be its mirror pod.
	complete.Name, complete.Namespace = pod.Name, pod.Namespace
	complete.Labels, complete.CreationTimestamp = pod.Labels, pod.CreationTimestamp
	maps.Copy(complete.Annotations, pod.Annotations) // not nil, because Record has set one
	// What the runtime knows is newer.
	complete.Spec.HostNetwork, complete.Spec.HostPID = pod.Spec.HostNetwork, pod.Spec.HostPID
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		complete.Spec.TerminationGracePeriodSeconds = pod.Spec.TerminationGracePeriodSeconds
	}
	if pod.DeletionGracePeriodSeconds != nil {
		complete.DeletionGracePeriodSeconds = pod.DeletionGracePeriodSeconds
	}
	complete.Status.Phase = pod.Status.Phase
	complete.Status.HostIP = cmp.Or(pod.Status.HostIP, complete.Status.HostIP)
	if pod.Status.PodIP != "" {
		complete.Status.PodIP, complete.Status.PodIPs = pod.Status.PodIP, pod.Status.PodIPs
	}
	return complete
}

// ForgetAllBut forgets all pods that are not running. running must be a complete list of the runtime.
func (info *Info) ForgetAllBut(running []*v1.Pod) {
	info.mu.Lock()
	defer info.mu.Unlock()
	for uid := range info.known {
		if !slices.ContainsFunc(running, func(pod *v1.Pod) bool { return pod.UID == uid }) {
			delete(info.known, uid)
			info.changed = true
		}
	}
}

// Save writes the recorded pods to the file, if they have changed since the last Save. The file has neither the environment nor
// the volumes of pods. It has their preStop hooks, whose arguments and headers may be secret: only the agent's user can read it.
func (info *Info) Save() error {
	info.saving.Lock()
	defer info.saving.Unlock()
	info.mu.Lock()
	var list v1.PodList
	for _, uid := range slices.Sorted(maps.Keys(info.known)) {
		list.Items = append(list.Items, *info.known[uid])
	}
	hasChanged := info.changed
	info.changed = false // before the file is written, so that a Record in the meantime counts
	info.mu.Unlock()
	if !hasChanged {
		return nil
	}
	if err := statefile.Store(info.stateDir, File, ownersOnly, list); err != nil {
		info.mu.Lock()
		info.changed = true // so that the next Save tries again
		info.mu.Unlock()
		return fmt.Errorf("failed to keep the pods' priorities: %w", err)
	}
	return nil
}

// reduce returns a copy of a pod with only the fields that its termination needs, such as the hooks: no environment,
// no volumes, no managed fields. A mirror pod becomes the static pod that it represents. The runtime's UID of a static
// pod is the hash of its manifest, which the mirror pod has in an annotation.
func reduce(pod *v1.Pod) *v1.Pod {
	reduced := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, OwnerReferences: pod.OwnerReferences, Generation: pod.Generation,
			DeletionTimestamp: pod.DeletionTimestamp, DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds, Annotations: map[string]string{},
		},
		Spec: v1.PodSpec{
			Priority: pod.Spec.Priority, PriorityClassName: pod.Spec.PriorityClassName, RestartPolicy: pod.Spec.RestartPolicy, NodeName: pod.Spec.NodeName,
			OS: pod.Spec.OS, TerminationGracePeriodSeconds: pod.Spec.TerminationGracePeriodSeconds, ReadinessGates: pod.Spec.ReadinessGates,
			InitContainers: reduceContainers(pod.Spec.InitContainers), Containers: reduceContainers(pod.Spec.Containers),
		},
		Status: pod.Status,
	}
	for _, c := range pod.Spec.EphemeralContainers {
		reduced.Spec.EphemeralContainers = append(reduced.Spec.EphemeralContainers,
			v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: c.Name, Image: c.Image}})
	}
	for name, value := range pod.Annotations {
		if strings.HasPrefix(name, "kubernetes.io/config.") {
			reduced.Annotations[name] = value
		}
	}
	if hash, isMirror := reduced.Annotations[v1.MirrorPodAnnotationKey]; isMirror {
		reduced.UID = types.UID(hash)
		delete(reduced.Annotations, v1.MirrorPodAnnotationKey)
		reduced.OwnerReferences, reduced.DeletionTimestamp, reduced.DeletionGracePeriodSeconds = nil, nil, nil
	}
	return reduced.DeepCopy()
}

// reduceContainers returns containers with only the fields that their termination needs.
func reduceContainers(containers []v1.Container) []v1.Container {
	reduced := make([]v1.Container, 0, len(containers))
	for _, c := range containers {
		reduced = append(reduced, v1.Container{
			Name: c.Name, Image: c.Image, Ports: c.Ports, Lifecycle: c.Lifecycle, RestartPolicy: c.RestartPolicy,
			TerminationMessagePath: c.TerminationMessagePath, TerminationMessagePolicy: c.TerminationMessagePolicy,
		})
	}
	return reduced
}

// nodeCritical is the priority of the class system-node-critical.
const nodeCritical = 2000001000

// Rule gives a priority to pods whose namespace and name match, if no source knows them.
type Rule struct {
	Namespace, Name string // patterns as for path.Match
	Priority        int32
}

// ParseRule parses NAMESPACE=PRIORITY or NAMESPACE/NAME=PRIORITY, where * stands for any text.
func ParseRule(text string) (Rule, error) {
	pattern, number, _ := strings.Cut(text, "=")
	namespace, name, hasName := strings.Cut(pattern, "/")
	if !hasName {
		name = "*"
	}
	priority, err := strconv.ParseInt(number, 10, 32)
	_, namespaceErr := path.Match(namespace, "")
	_, nameErr := path.Match(name, "")
	if err != nil || namespaceErr != nil || nameErr != nil || namespace == "" {
		return Rule{}, errors.New("must be NAMESPACE=PRIORITY or NAMESPACE/NAME=PRIORITY, such as ingress/*=1000")
	}
	return Rule{Namespace: namespace, Name: name, Priority: int32(priority)}, nil
}

// matches reports whether the rule is for a pod.
func (r Rule) matches(pod *v1.Pod) bool {
	namespaceMatches, _ := path.Match(r.Namespace, pod.Namespace) // ParseRule has checked the patterns
	nameMatches, _ := path.Match(r.Name, pod.Name)
	return namespaceMatches && nameMatches
}

// priorityOf returns the priority for a pod that neither the API server nor the kubelet has described, and where the
// priority comes from: a rule (FromRule) or a guess (Guessed). The first rule that matches the pod decides. Without one,
// pods of kube-system and pods in the host's network get the priority of system-node-critical, so that they stop last: other
// pods may need them, for example for their network. All others get 0.
func priorityOf(pod *v1.Pod, rules []Rule) (priority int32, origin string) {
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
