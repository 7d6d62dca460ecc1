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

// container is the name of the one container of each pod.
const container = "server"

// pod is a pod and what has happened to it. The cluster's mutex guards what changes.
type pod struct {
	name    string
	address string

	api         *v1.Pod // replaced, never changed, once its termination has begun
	termination *lifecycle.Termination
	deleted     time.Time
	signalled   time.Time
	killed      bool
	exited      time.Time
}

// newPod makes a pod of a scenario that is neither started nor ready.
func newPod(name string, s Settings, scenario Scenario) *pod {
	spec := v1.PodSpec{
		NodeName:                      "node", // the API server gives no grace to a pod that no node has
		TerminationGracePeriodSeconds: &s.GraceSeconds,
		Containers:                    []v1.Container{{Name: container}},
	}
	if scenario.SleepSeconds > 0 {
		spec.Containers[0].Lifecycle = &v1.Lifecycle{
			PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: scenario.SleepSeconds}},
		}
	}
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name, UID: types.UID(name)}
	return &pod{name: name, api: &v1.Pod{ObjectMeta: meta, Spec: spec, Status: status(false)}}
}

// status is that of a pod that runs, or has ended.
func status(ready bool) v1.PodStatus {
	is := v1.ConditionFalse
	if ready {
		is = v1.ConditionTrue
	}
	return v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{{Type: v1.ContainersReady, Status: is}, {Type: v1.PodReady, Status: is}}}
}

// endpoint is a pod's in an EndpointSlice.
func (p *pod) endpoint() proxy.Endpoint {
	conditions := apistatus.EndpointConditions(p.api)
	if p.api.DeletionTimestamp == nil {
		// A pod that is not being terminated is ready if it serves.
		terminating := false
		conditions = discoveryv1.EndpointConditions{Ready: conditions.Serving, Serving: conditions.Serving, Terminating: &terminating}
	}
	return proxy.Endpoint{Name: p.name, Address: p.address, Conditions: conditions}
}

// start starts the process of a pod, waits until it answers and publishes it.
func (c *cluster) start(ctx context.Context, p *pod) error {
	command := append([]string{}, c.settings.Backend...)
	if c.scenario.CloseWebsockets {
		// Half of what is left of the grace: the rest is for clients that are slow to go.
		over := time.Duration(c.settings.GraceSeconds-c.scenario.SleepSeconds) * time.Second / 2
		command = append(command, "--close-websockets", "--close-over="+min(over, closeOver).String())
	}
	err := c.terminator.Start(ctx, p.api, container, func(ctx context.Context) (string, error) {
		address, err := c.runtime.Start(ctx, p.name, command, os.Stderr)
		if err != nil {
			return "", err
		}
		p.address = address
		return p.name, nil
	})
	if err != nil {
		return fmt.Errorf("failed to start a backend: %w", err)
	}
	if err := c.probe(ctx, "http://"+p.address+"/readyz"); err != nil {
		return fmt.Errorf("backend %s is not ready: %w", p.name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p.api = p.api.DeepCopy()
	p.api.Status = status(true)
	c.pods = append(c.pods, p)
	c.publishLocked()
	return nil
}

// closeOver is the longest time over which a backend spreads the closing of websockets.
const closeOver = 2 * time.Second

// probe is the readiness probe of a pod: it is ready once it answers.
func (c *cluster) probe(ctx context.Context, url string) error {
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

// remove deletes a pod, as the API server and its node do it, and returns at once.
func (c *cluster) remove(ctx context.Context, p *pod) error {
	var options metav1.DeleteOptions
	if c.scenario.DeleteGraceSeconds > 0 {
		options.GracePeriodSeconds = &c.scenario.DeleteGraceSeconds
	} else {
		options.GracePeriodSeconds = p.api.Spec.TerminationGracePeriodSeconds
	}
	deleted := p.api.DeepCopy()
	if _, _, err := graceperiod.BeforeDelete(deleted, &options, time.Now()); err != nil {
		return fmt.Errorf("failed to delete %s: %w", p.name, err)
	}
	c.mu.Lock()
	p.api, p.deleted = deleted, time.Now()
	c.publishLocked()
	c.mu.Unlock()
	c.say(p, "deleted, grace "+strconv.FormatInt(*deleted.DeletionGracePeriodSeconds, 10)+" s")
	p.termination = c.terminator.Terminate(ctx, deleted, lifecycle.Request{})
	return nil
}

// signal notes that a pod's process is about to get a signal.
func (c *cluster) signal(name string, signal os.Signal) {
	c.mu.Lock()
	p := c.findLocked(name)
	if p != nil && signal != os.Kill && p.signalled.IsZero() {
		p.signalled = time.Now()
	}
	if p != nil && signal == os.Kill {
		p.killed = true
	}
	c.mu.Unlock()
	if p != nil {
		c.say(p, map[bool]string{true: "SIGKILL", false: "SIGTERM"}[signal == os.Kill])
	}
}

// await waits until a deleted pod has ended, and takes it out of the endpoints.
func (c *cluster) await(ctx context.Context, p *pod) error {
	if _, err := p.termination.Wait(ctx); err != nil {
		return fmt.Errorf("failed to stop %s: %w", p.name, err)
	}
	c.mu.Lock()
	ended := p.api.DeepCopy()
	ended.Status = status(false)
	p.api, p.exited = ended, time.Now()
	c.publishLocked()
	c.mu.Unlock()
	c.say(p, "gone: "+c.runtime.State(p.name))
	return nil
}
