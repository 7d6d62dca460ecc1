package main

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// The placeholders in the text of the model pod. They occur nowhere else in it.
const (
	placeholderNumber   = "@number@"
	placeholderNode     = "@node@"
	placeholderGrace    = "987654321"
	placeholderPriority = "1987654321"
	placeholderSleep    = "876543219"
)

// model returns a pod as an API server has it, with placeholders for what differs from pod to
// pod. settings is the number of environment variables of each container, which determines
// the size of the pod.
func model(settings int) *v1.Pod {
	start := metav1.NewTime(time.Date(2026, 5, 1, 6, 0, 0, 0, time.UTC))
	return &v1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "storefront-7c9d6b5f4-" + placeholderNumber, GenerateName: "storefront-7c9d6b5f4-", Namespace: "team-storefront",
			UID: types.UID("5c0e8a52-6f3c-4b7e-9a41-" + placeholderNumber), ResourceVersion: placeholderNumber, CreationTimestamp: start,
			Labels: map[string]string{
				"app.kubernetes.io/name": "storefront", "app.kubernetes.io/part-of": "shop", "app.kubernetes.io/managed-by": "Helm",
				"pod-template-hash": "7c9d6b5f4", "topology.kubernetes.io/zone": "eu-central-1b",
			},
			Annotations: map[string]string{
				"checksum/config":      "4e07408562bedb8b60ce05c1decfe3ad16b72230967de01f640b7e4729b49fce",
				"prometheus.io/scrape": "true", "prometheus.io/port": "9090",
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "storefront-7c9d6b5f4", UID: "0a6d5ab7-5cd0-4a0e-8f6a-f4d2d5f8a001", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}},
		},
		Spec: v1.PodSpec{
			NodeName: "node-" + placeholderNode, ServiceAccountName: "storefront", RestartPolicy: v1.RestartPolicyAlways, DNSPolicy: v1.DNSClusterFirst,
			TerminationGracePeriodSeconds: ptr.To(int64(987654321)), Priority: ptr.To(int32(1987654321)), EnableServiceLinks: ptr.To(true),
			Containers: []v1.Container{container("app", settings), container("metrics", settings)},
			Tolerations: []v1.Toleration{
				{Key: v1.TaintNodeNotReady, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute, TolerationSeconds: ptr.To(int64(300))},
				{Key: v1.TaintNodeUnreachable, Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute, TolerationSeconds: ptr.To(int64(300))},
			},
			Volumes: []v1.Volume{
				{Name: "settings", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "storefront"}, DefaultMode: ptr.To(int32(420))}}},
				{Name: "token", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "storefront-token", DefaultMode: ptr.To(int32(420))}}},
			},
		},
		Status: status(start),
	}
}

// container returns a container of the model pod. The container app has a preStop sleep.
func container(name string, settings int) v1.Container {
	c := v1.Container{
		Name: name, Image: "registry.example.org/shop/" + name + "@sha256:9b0c5b1de8d3e1d9cf4b7b34c6f2c6f7a3a1d0fb9b7f7b7ed5e7e1f6f2a3b4c5",
		ImagePullPolicy: v1.PullIfNotPresent, TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: v1.TerminationMessageReadFile,
		Ports: []v1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: v1.ProtocolTCP}},
		Resources: v1.ResourceRequirements{
			Limits:   v1.ResourceList{v1.ResourceCPU: resource.MustParse("2"), v1.ResourceMemory: resource.MustParse("1Gi")},
			Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("250m"), v1.ResourceMemory: resource.MustParse("512Mi")},
		},
		ReadinessProbe: &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: "/ready", Port: intstr.FromString("http")}}, PeriodSeconds: 5, TimeoutSeconds: 1},
		VolumeMounts:   []v1.VolumeMount{{Name: "settings", MountPath: "/etc/storefront", ReadOnly: true}, {Name: "token", MountPath: "/var/run/secrets/storefront", ReadOnly: true}},
	}
	for i := range settings {
		c.Env = append(c.Env, v1.EnvVar{Name: fmt.Sprintf("STOREFRONT_SETTING_%02d", i), Value: fmt.Sprintf("https://backend-%02d.shop.svc.cluster.local:8443/v1?say=\"{[hello]}\"", i)})
	}
	if name == "app" {
		c.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 876543219}}}
	}
	return c
}

// status returns the status of a running pod.
func status(start metav1.Time) v1.PodStatus {
	s := v1.PodStatus{
		Phase: v1.PodRunning, HostIP: "10.11.12.13", PodIP: "10.200.3.4", PodIPs: []v1.PodIP{{IP: "10.200.3.4"}},
		StartTime: &start, QOSClass: v1.PodQOSBurstable,
	}
	for _, condition := range []v1.PodConditionType{v1.PodReadyToStartContainers, v1.PodInitialized, v1.PodReady, v1.ContainersReady, v1.PodScheduled} {
		s.Conditions = append(s.Conditions, v1.PodCondition{Type: condition, Status: v1.ConditionTrue, LastTransitionTime: start})
	}
	for _, name := range []string{"app", "metrics"} {
		s.ContainerStatuses = append(s.ContainerStatuses, v1.ContainerStatus{
			Name: name, Ready: true, Started: ptr.To(true), Image: "registry.example.org/shop/" + name,
			ImageID:     "registry.example.org/shop/" + name + "@sha256:9b0c5b1de8d3e1d9cf4b7b34c6f2c6f7a3a1d0fb9b7f7b7ed5e7e1f6f2a3b4c5",
			ContainerID: "containerd://5f7a3a1d0fb9b7f7b7ed5e7e1f6f2a3b4c59b0c5b1de8d3e1d9cf4b7b34c6f2c6" + name,
			State:       v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: start}},
			Resources:   &v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("250m"), v1.ResourceMemory: resource.MustParse("512Mi")}},
		})
	}
	return s
}
