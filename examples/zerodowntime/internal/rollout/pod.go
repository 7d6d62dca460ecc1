package rollout

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/proxy"
	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown/apistatus"
)

// containerName is the name of the one container of each pod.
const containerName = "server"

// pod is one pod of a service. The fields below address are guarded by the mutex of the
// service, except termination, which only the goroutine that deletes the pod writes.
type pod struct {
	name    string
	address string // of its server; set by startPod

	object      *v1.Pod // as the API server has it; a change makes a copy
	termination *lifecycle.Termination
	deleted     time.Time
	signalled   time.Time // when SIGTERM was sent
	killed      bool      // SIGKILL was sent
	exited      time.Time
}

// newPod makes a pod for a scenario. It is not started and not ready.
func newPod(name string, s Settings, scenario Scenario) *pod {
	spec := v1.PodSpec{
		NodeName:                      "node", // the API server deletes a pod without a node at once
		TerminationGracePeriodSeconds: &s.GraceSeconds,
		Containers:                    []v1.Container{{Name: containerName}},
	}
	if scenario.SleepSeconds > 0 {
		spec.Containers[0].Lifecycle = &v1.Lifecycle{
			PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: scenario.SleepSeconds}},
		}
	}
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name, UID: types.UID(name)}
	return &pod{name: name, object: &v1.Pod{ObjectMeta: meta, Spec: spec, Status: status(false)}}
}

// status returns the status of a running pod that is ready or not.
func status(ready bool) v1.PodStatus {
	condition := v1.ConditionFalse
	if ready {
		condition = v1.ConditionTrue
	}
	return v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{{Type: v1.ContainersReady, Status: condition}, {Type: v1.PodReady, Status: condition}}}
}

// endpoint returns the pod's endpoint in an EndpointSlice.
func (p *pod) endpoint() proxy.Endpoint {
	conditions := apistatus.EndpointConditions(p.object)
	if p.object.DeletionTimestamp == nil {
		// EndpointConditions is for pods that are being terminated.
		terminating := false
		conditions = discoveryv1.EndpointConditions{Ready: conditions.Serving, Serving: conditions.Serving, Terminating: &terminating}
	}
	return proxy.Endpoint{Name: p.name, Address: p.address, Conditions: conditions}
}

// startPod starts the process of a pod, waits until it is ready, and publishes its endpoint.
func (svc *service) startPod(ctx context.Context, p *pod) error {
	command := append([]string{}, svc.settings.Backend...)
	if svc.scenario.CloseWebsockets {
		// The backend sends its close frames in the first half of the time that the sleep
		// leaves, so that slow clients have the second half to answer.
		over := time.Duration(svc.settings.GraceSeconds-svc.scenario.SleepSeconds) * time.Second / 2
		command = append(command, "--close-websockets", "--close-over="+min(over, maxCloseOver).String())
	}
	err := svc.terminator.Start(ctx, p.object, containerName, func(ctx context.Context) (err error) {
		p.address, err = svc.runtime.Start(ctx, p.name, command, os.Stderr)
		return err
	})
	if err != nil {
		return fmt.Errorf("failed to start a backend: %w", err)
	}
	if err := probe(ctx, "http://"+p.address+"/readyz"); err != nil {
		return fmt.Errorf("backend %s is not ready: %w", p.name, err)
	}
	svc.mu.Lock()
	defer svc.mu.Unlock()
	p.object = p.object.DeepCopy()
	p.object.Status = status(true)
	svc.pods = append(svc.pods, p)
	svc.publishLocked()
	return nil
}

// maxCloseOver is the longest time over which a backend spreads its close frames.
const maxCloseOver = 2 * time.Second

// probe is the readiness probe of a pod: it returns nil if url answers with 200.
func probe(ctx context.Context, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("it answered %s", response.Status)
	}
	return nil
}

// deletePod deletes a pod as the API server and the pod's node do. It begins the termination
// and does not wait for its end.
func (svc *service) deletePod(ctx context.Context, p *pod) error {
	var options metav1.DeleteOptions
	if svc.scenario.DeleteGraceSeconds > 0 {
		options.GracePeriodSeconds = &svc.scenario.DeleteGraceSeconds
	} else {
		options.GracePeriodSeconds = p.object.Spec.TerminationGracePeriodSeconds
	}
	deleted := p.object.DeepCopy()
	if _, _, err := graceperiod.BeforeDelete(deleted, &options, time.Now()); err != nil {
		return fmt.Errorf("failed to delete %s: %w", p.name, err)
	}
	svc.mu.Lock()
	p.object, p.deleted = deleted, time.Now()
	svc.publishLocked()
	svc.mu.Unlock()
	svc.report(p, "deleted, grace "+strconv.FormatInt(*deleted.DeletionGracePeriodSeconds, 10)+" s")
	p.termination = svc.terminator.Terminate(ctx, deleted, lifecycle.Request{})
	return nil
}

// onSignal records that a signal is sent to a pod's process.
func (svc *service) onSignal(name string, signal os.Signal) {
	svc.mu.Lock()
	p := svc.findLocked(name)
	if p != nil && signal != os.Kill && p.signalled.IsZero() {
		p.signalled = time.Now()
	}
	if p != nil && signal == os.Kill {
		p.killed = true
	}
	svc.mu.Unlock()
	if p != nil {
		svc.report(p, map[bool]string{true: "SIGKILL", false: "SIGTERM"}[signal == os.Kill])
	}
}

// waitForEnd waits until a deleted pod has ended. Its endpoint does not serve any more then.
func (svc *service) waitForEnd(ctx context.Context, p *pod) error {
	if _, err := p.termination.Wait(ctx); err != nil {
		return fmt.Errorf("failed to stop %s: %w", p.name, err)
	}
	svc.mu.Lock()
	ended := p.object.DeepCopy()
	ended.Status = status(false)
	p.object, p.exited = ended, time.Now()
	svc.publishLocked()
	svc.mu.Unlock()
	svc.report(p, "gone: "+svc.runtime.State(p.name))
	return nil
}
