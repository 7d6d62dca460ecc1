package main

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// afterSleep is how many seconds of a pod's grace period are left after the preStop sleep, which is a part
	// of the grace period.
	afterSleep = 30
	// cutGrace is the grace period, in seconds, of a delete that cuts the sleep off.
	cutGrace = 1

	webContainer   = "web"
	proxyContainer = "proxy"
)

// proxyKind says how the pods run a proxy through which all requests pass, such as the proxy of a service mesh.
type proxyKind string

const (
	noProxy        proxyKind = ""
	proxyAsMain    proxyKind = "container" // an ordinary container: it gets SIGTERM while the web server still sleeps
	proxyAsSidecar proxyKind = "sidecar"   // an init container with restartPolicy Always: it stops last
)

// scenario is one way to set up the shutdown of pods.
type scenario struct {
	sleep int64 // how many seconds the web server's preStop hook sleeps; 0: there is no hook
	grace int64 // the grace period of the deletes in seconds, as in kubectl delete --grace-period; 0: that of the pods
	proxy proxyKind
}

// scenarios returns the scenarios that are compared: no preStop sleep, a sleep, and three scenarios that show
// when the sleep helps and when it does not. sleep is in seconds.
func scenarios(sleep int64) []scenario {
	return []scenario{
		{},
		{sleep: sleep},
		{sleep: sleep, grace: cutGrace},
		{sleep: sleep, proxy: proxyAsMain},
		{sleep: sleep, proxy: proxyAsSidecar},
	}
}

// lines describes the scenario in up to three short lines, for the picture.
func (s scenario) lines() []string {
	if s.sleep == 0 {
		return []string{"no preStop", "sleep"}
	}
	sleep := fmt.Sprintf("sleep %d s", s.sleep)
	switch {
	case s.grace > 0:
		return []string{sleep + ",", "grace cut", fmt.Sprintf("to %d s", s.grace)}
	case s.proxy != noProxy:
		return []string{sleep + ",", "proxy as", string(s.proxy)}
	default:
		return []string{sleep}
	}
}

// String describes the scenario, as in "sleep 5 s, proxy as sidecar".
func (s scenario) String() string { return strings.Join(s.lines(), " ") }

// pod returns a pod as its author would write it for the scenario.
func (s scenario) pod(name string) *v1.Pod {
	web := v1.Container{Name: webContainer}
	if s.sleep > 0 {
		web.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: s.sleep}}}
	}
	grace := s.sleep + afterSleep
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name, UID: types.UID(name)},
		Spec: v1.PodSpec{
			NodeName:                      "node", // the API server deletes a pod without a node at once
			TerminationGracePeriodSeconds: &grace,
			Containers:                    []v1.Container{web},
		},
		Status: v1.PodStatus{Phase: v1.PodRunning},
	}
	always := v1.ContainerRestartPolicyAlways
	switch s.proxy {
	case proxyAsMain:
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: proxyContainer})
	case proxyAsSidecar:
		pod.Spec.InitContainers = []v1.Container{{Name: proxyContainer, RestartPolicy: &always}}
	case noProxy:
	}
	return pod
}
