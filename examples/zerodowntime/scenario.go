package main

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// afterSleep is the time that a pod's grace period leaves after the preStop sleep, in seconds: the sleep is
	// taken from the grace period.
	afterSleep = 30
	// cutGrace is the grace period of a delete that cuts the sleep off, in seconds.
	cutGrace = 1

	webContainer   = "web"
	proxyContainer = "proxy"
)

// proxyKind says how the pods run a proxy, such as that of a service mesh, through which all requests pass.
type proxyKind string

const (
	noProxy        proxyKind = ""
	proxyAsMain    proxyKind = "container" // one more container, which stops at the same time as the others
	proxyAsSidecar proxyKind = "sidecar"   // an init container with restartPolicy Always, which stops last
)

// scenario is one way to set up the shutdown of pods.
type scenario struct {
	sleep int64 // of the web server's preStop hook, in seconds; 0: there is no hook
	grace int64 // that the deletes request, as kubectl delete --grace-period does; 0: the pods' own grace period
	proxy proxyKind
}

// scenarios returns the scenarios that are compared: without a sleep, with it, and what else decides whether
// it helps.
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
