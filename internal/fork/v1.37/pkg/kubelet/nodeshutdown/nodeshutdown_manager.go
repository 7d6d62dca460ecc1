// Package nodeshutdown stands in for the kubelet's package of this name. A fork copies only the files with
// kubegrace in their path (SERIES.md). The other files declare just what those need.
package nodeshutdown

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/kubernetes/pkg/kubelet/volumemanager"
)

// Manager is the node shutdown manager.
type Manager interface {
	lifecycle.PodAdmitHandler

	Start(ctx context.Context) error
	ShutdownStatus() error
}

// Config configures the manager.
type Config struct {
	Logger                           klog.Logger
	VolumeManager                    volumemanager.VolumeManager
	Recorder                         record.EventRecorder
	NodeRef                          *v1.ObjectReference
	GetPodsFunc                      eviction.ActivePodsFunc
	KillPodFunc                      eviction.KillPodFunc
	SyncNodeStatusFunc               func(context.Context)
	ShutdownGracePeriodRequested     time.Duration
	ShutdownGracePeriodCriticalPods  time.Duration
	ShutdownGracePeriodByPodPriority []kubeletconfig.ShutdownGracePeriodByPodPriority
	StateDirectory                   string
	Clock                            clock.Clock
}

// managerStub admits every pod.
type managerStub struct{}

// Admit admits every pod.
func (managerStub) Admit(context.Context, *lifecycle.PodAdmitAttributes) lifecycle.PodAdmitResult {
	return lifecycle.PodAdmitResult{Admit: true}
}

// Start does nothing.
func (managerStub) Start(context.Context) error { return nil }

// ShutdownStatus does nothing.
func (managerStub) ShutdownStatus() error { return nil }
