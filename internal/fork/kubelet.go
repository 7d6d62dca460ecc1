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

// Of pkg/kubelet/container.
type (
	// ContainerID is the ID of a container or a sandbox, and whose it is.
	ContainerID struct{ Type, ID string }
	// Container is a container, or a sandbox, as the runtime lists it.
	Container struct {
		ID   ContainerID
		Name string
	}
	// Pod is what runs of a pod.
	Pod struct {
		ID                    types.UID
		Name, Namespace       string
		Containers, Sandboxes []*Container
	}
	// PodStatus is what the runtime says of a pod.
	PodStatus struct{ IPs []string }
	// CommandRunner runs a command in a container.
	CommandRunner interface {
		RunInContainer(ctx context.Context, id ContainerID, cmd []string, timeout time.Duration) ([]byte, error)
	}
	// HandlerRunner runs a lifecycle hook.
	HandlerRunner interface {
		Run(ctx context.Context, containerID ContainerID, pod *v1.Pod, container *v1.Container, handler *v1.LifecycleHandler) (string, error)
	}
	// SyncResult is what became of one action of a sync.
	SyncResult struct {
		Action  string
		Target  any
		Error   error
		Message string
	}
	// PodSyncResult is what became of all.
	PodSyncResult struct{ SyncResults []*SyncResult }
)

// The actions, and the errors of their failures.
const (
	KillContainer  = "KillContainer"
	KillPodSandbox = "KillPodSandbox"
)

var (
	// ErrKillContainer is that of KillContainer.
	ErrKillContainer = errors.New("KillContainerError")
	// ErrKillPodSandbox is that of KillPodSandbox.
	ErrKillPodSandbox = errors.New("KillPodSandboxError")
)

// String is the ID as it stands in a status.
func (c ContainerID) String() string { return c.Type + "://" + c.ID }

// NewSyncResult is the result of an action that has not failed.
func NewSyncResult(action string, target any) *SyncResult {
	return &SyncResult{Action: action, Target: target}
}

// Fail makes it the result of one that has.
func (r *SyncResult) Fail(err error, message string) { r.Error, r.Message = err, message }

// AddSyncResult adds results.
func (p *PodSyncResult) AddSyncResult(results ...*SyncResult) {
	p.SyncResults = append(p.SyncResults, results...)
}

// Error joins those that have failed.
func (p *PodSyncResult) Error() error {
	var errs []error
	for _, r := range p.SyncResults {
		if r.Error != nil {
			errs = append(errs, fmt.Errorf("failed to %q for %q with %w: %q", r.Action, r.Target, r.Error, r.Message))
		}
	}
	return utilerrors.NewAggregate(errs)
}

// Of pkg/kubelet/lifecycle and pkg/kubelet/types.
type (
	// HTTPDoer sends a request.
	HTTPDoer interface {
		Do(req *http.Request) (*http.Response, error)
	}
	// podStatusProvider is the runtime, for the addresses of pods.
	podStatusProvider interface {
		GetPodStatus(ctx context.Context, uid types.UID, name, namespace string) (*PodStatus, error)
	}
	// PodAdmitAttributes is a pod that wants to start.
	PodAdmitAttributes struct {
		Pod       *v1.Pod
		OtherPods []*v1.Pod
	}
	// PodAdmitResult says whether it may.
	PodAdmitResult struct {
		Admit           bool
		Reason, Message string
	}
	// PodAdmitHandler decides that.
	PodAdmitHandler interface {
		Admit(attrs *PodAdmitAttributes) PodAdmitResult
	}
)

// Of pkg/kubelet/eviction.
type (
	// KillPodFunc kills a pod and returns when it has ended.
	KillPodFunc func(pod *v1.Pod, isEvicted bool, gracePeriodOverride *int64, fn func(*v1.PodStatus)) error
	// ActivePodsFunc gives the pods that run.
	ActivePodsFunc func() []*v1.Pod
)

// Of pkg/kubelet/nodeshutdown, pkg/kubelet/volumemanager and pkg/kubelet/apis/config.
type (
	// Manager is the node shutdown manager. In older releases Start has no context.
	Manager interface {
		PodAdmitHandler
		Start(ctx context.Context) error
		ShutdownStatus() error
	}
	// Config says what the manager works with.
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
	// VolumeManager is the part of it that the manager needs.
	VolumeManager interface {
		WaitForAllPodsUnmount(ctx context.Context, pods []*v1.Pod) error
	}
	// ShutdownGracePeriodByPodPriority is the time of the pods from a priority on.
	ShutdownGracePeriodByPodPriority struct {
		Priority                   int32
		ShutdownGracePeriodSeconds int64
	}
)

// Of pkg/kubelet.
type (
	// KillPodOptions says how a pod is to be killed.
	KillPodOptions struct {
		CompletedCh                              chan<- struct{}
		Evict                                    bool
		PodStatusFunc                            func(*v1.PodStatus)
		PodTerminationGracePeriodSecondsOverride *int64
	}
	// UpdatePodOptions tells the workers what is new about a pod; UpdateType is always
	// SyncPodKill here.
	UpdatePodOptions struct {
		Pod            *v1.Pod
		UpdateType     string
		KillPodOptions *KillPodOptions
	}
	// PodWorkers is the part of it that kills.
	PodWorkers interface {
		UpdatePod(options UpdatePodOptions)
	}
	// podSyncStatus is what the workers know of a pod.
	podSyncStatus struct{ gracePeriod int64 }
)

// SyncPodKill is the update of a pod that is to be killed.
const SyncPodKill = "kill"

// Of pkg/apis/core: the API server's internal pod, which is not that of k8s.io/api.
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

// The phases of a pod that has ended.
const (
	apiPodSucceeded = "Succeeded"
	apiPodFailed    = "Failed"
)

// DeepCopyObject implements [runtime.Object].
func (p *apiPod) DeepCopyObject() runtime.Object {
	c, meta := *p, &p.ObjectMeta
	meta.DeepCopyInto(&c.ObjectMeta)
	if seconds := p.Spec.TerminationGracePeriodSeconds; seconds != nil {
		own := *seconds
		c.Spec.TerminationGracePeriodSeconds = &own
	}
	return &c
}
