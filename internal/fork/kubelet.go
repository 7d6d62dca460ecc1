package fork

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

// Types of pkg/kubelet/container.
type (
	// ContainerID is the ID of a container or a sandbox with the name of its runtime.
	ContainerID struct{ Type, ID string }
	// Container is a container, or a sandbox, as the runtime lists it.
	Container struct {
		ID   ContainerID
		Name string
	}
	// Pod has the running containers and sandboxes of a pod.
	Pod struct {
		ID                    types.UID
		Name, Namespace       string
		Containers, Sandboxes []*Container
	}
	// PodStatus is the status of a pod in the runtime.
	PodStatus struct{ IPs []string }
	// CommandRunner runs a command in a container.
	CommandRunner interface {
		RunInContainer(ctx context.Context, id ContainerID, cmd []string, timeout time.Duration) ([]byte, error)
	}
	// HandlerRunner runs a lifecycle hook.
	HandlerRunner interface {
		Run(ctx context.Context, containerID ContainerID, pod *v1.Pod, container *v1.Container, handler *v1.LifecycleHandler) (string, error)
	}
	// SyncResult is the result of one action of a sync.
	SyncResult struct {
		Action  string
		Target  any
		Error   error
		Message string
	}
	// PodSyncResult has the results of all actions of a sync.
	PodSyncResult struct{ SyncResults []*SyncResult }
)

// The actions of a kill.
const (
	KillContainer  = "KillContainer"
	KillPodSandbox = "KillPodSandbox"
)

var (
	// ErrKillContainer is the error of a failed KillContainer.
	ErrKillContainer = errors.New("KillContainerError")
	// ErrKillPodSandbox is the error of a failed KillPodSandbox.
	ErrKillPodSandbox = errors.New("KillPodSandboxError")
)

// String returns the ID as statuses have it.
func (c ContainerID) String() string { return c.Type + "://" + c.ID }

// NewSyncResult returns the result of a successful action.
func NewSyncResult(action string, target any) *SyncResult {
	return &SyncResult{Action: action, Target: target}
}

// Fail makes it the result of a failed action.
func (r *SyncResult) Fail(err error, message string) { r.Error, r.Message = err, message }

// AddSyncResult adds results.
func (p *PodSyncResult) AddSyncResult(results ...*SyncResult) {
	p.SyncResults = append(p.SyncResults, results...)
}

// Error aggregates the errors of the failed actions.
func (p *PodSyncResult) Error() error {
	var errs []error
	for _, r := range p.SyncResults {
		if r.Error != nil {
			errs = append(errs, fmt.Errorf("failed to %q for %q with %w: %q", r.Action, r.Target, r.Error, r.Message))
		}
	}
	return utilerrors.NewAggregate(errs)
}

// Types of pkg/kubelet/lifecycle and pkg/kubelet/types.
type (
	// HTTPDoer sends a request.
	HTTPDoer interface {
		Do(req *http.Request) (*http.Response, error)
	}
	// podStatusProvider returns the IPs of pods; the runtime implements it.
	podStatusProvider interface {
		GetPodStatus(ctx context.Context, uid types.UID, name, namespace string) (*PodStatus, error)
	}
	// PodAdmitAttributes is a pod that asks for admission.
	PodAdmitAttributes struct {
		Pod       *v1.Pod
		OtherPods []*v1.Pod
	}
	// PodAdmitResult is the decision about its admission.
	PodAdmitResult struct {
		Admit           bool
		Reason, Message string
	}
	// PodAdmitHandler decides about admission.
	PodAdmitHandler interface {
		Admit(attrs *PodAdmitAttributes) PodAdmitResult
	}
)

// Types of pkg/kubelet/eviction.
type (
	// KillPodFunc kills a pod and returns when it has ended.
	KillPodFunc func(pod *v1.Pod, isEvicted bool, gracePeriodOverride *int64, fn func(*v1.PodStatus)) error
	// ActivePodsFunc returns the running pods.
	ActivePodsFunc func() []*v1.Pod
)

// Types of pkg/kubelet/nodeshutdown, pkg/kubelet/volumemanager and pkg/kubelet/apis/config.
type (
	// Manager is the node shutdown manager. In older releases Start has no context.
	Manager interface {
		PodAdmitHandler
		Start(ctx context.Context) error
		ShutdownStatus() error
	}
	// Config configures the manager.
	Config struct {
		Logger                           klog.Logger
		VolumeManager                    VolumeManager
		Recorder                         record.EventRecorder
		NodeRef                          *v1.ObjectReference
		GetPodsFunc                      ActivePodsFunc
		KillPodFunc                      KillPodFunc
		SyncNodeStatusFunc               func()
		ShutdownGracePeriodRequested     time.Duration
		ShutdownGracePeriodCriticalPods  time.Duration
		ShutdownGracePeriodByPodPriority []ShutdownGracePeriodByPodPriority
		StateDirectory                   string
	}
	// VolumeManager is the part of the kubelet's volume manager that the shutdown manager uses.
	VolumeManager interface {
		WaitForAllPodsUnmount(ctx context.Context, pods []*v1.Pod) error
	}
	// ShutdownGracePeriodByPodPriority is the grace period of the pods from a priority upwards.
	ShutdownGracePeriodByPodPriority struct {
		Priority                   int32
		ShutdownGracePeriodSeconds int64
	}
)

// Types of pkg/kubelet.
type (
	// KillPodOptions are the options of a kill.
	KillPodOptions struct {
		CompletedCh                              chan<- struct{}
		Evict                                    bool
		PodStatusFunc                            func(*v1.PodStatus)
		PodTerminationGracePeriodSecondsOverride *int64
	}
	// UpdatePodOptions is an update for the pod workers; UpdateType is always SyncPodKill
	// here.
	UpdatePodOptions struct {
		Pod            *v1.Pod
		UpdateType     string
		KillPodOptions *KillPodOptions
	}
	// PodWorkers is the part of the pod workers that kills pods.
	PodWorkers interface {
		UpdatePod(options UpdatePodOptions)
	}
	// podSyncStatus is the state of a pod in the pod workers.
	podSyncStatus struct{ gracePeriod int64 }
)

// SyncPodKill is the update type of a kill.
const SyncPodKill = "kill"

// Types of pkg/apis/core: the API server's internal pod, which differs from that of k8s.io/api.
type (
	apiPod struct {
		metav1.TypeMeta
		metav1.ObjectMeta
		Spec   apiPodSpec
		Status apiPodStatus
	}
	apiPodSpec struct {
		TerminationGracePeriodSeconds *int64
		NodeName                      string
	}
	apiPodStatus struct{ Phase string }
)

// The terminal phases of a pod.
const (
	apiPodSucceeded = "Succeeded"
	apiPodFailed    = "Failed"
)

// DeepCopyObject implements [runtime.Object].
func (p *apiPod) DeepCopyObject() runtime.Object {
	c, meta := *p, &p.ObjectMeta
	meta.DeepCopyInto(&c.ObjectMeta)
	if seconds := p.Spec.TerminationGracePeriodSeconds; seconds != nil {
		copied := *seconds
		c.Spec.TerminationGracePeriodSeconds = &copied
	}
	return &c
}
