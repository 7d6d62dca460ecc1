package cri_test

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// webPod returns a pod with a plain init container, a sidecar and two main containers.
func webPod() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: "shop", UID: "web-1",
			Labels:      map[string]string{"app": "web"},
			Annotations: map[string]string{"team": "sales"},
		},
		Spec: v1.PodSpec{
			InitContainers: []v1.Container{
				{Name: "migrate", Image: "busybox"},
				{Name: "proxy", Image: "busybox", RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways)},
			},
			Containers: []v1.Container{
				{
					Name: "server", Image: "nginx:1.16.1",
					Command: []string{"/bin/server"}, Args: []string{"--port", "80"}, WorkingDir: "/srv",
					Env: []v1.EnvVar{{Name: "MODE", Value: "fast"}, {Name: "EMPTY"}},
				},
				{Name: "cache", Image: "busybox"},
			},
		},
	}
}

// onePod returns a pod with one container, which edit has changed unless it is nil.
func onePod(edit func(*v1.Container)) *v1.Pod {
	container := v1.Container{Name: "server", Image: "busybox"}
	if edit != nil {
		edit(&container)
	}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "shop", UID: "one-1"},
		Spec:       v1.PodSpec{Containers: []v1.Container{container}},
	}
}

func withStopSignal(signal v1.Signal) func(*v1.Container) {
	return func(c *v1.Container) { c.Lifecycle = &v1.Lifecycle{StopSignal: &signal} }
}
