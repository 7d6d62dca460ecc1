package apiservertest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/internal/apiserverprocess"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/apistatus"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

const (
	shutdownInProgress v1.NodeConditionType = "GracefulNodeShutdownInProgress"
	drainInProgress    v1.NodeConditionType = "DrainInProgress"
)

// rule reports whether a DaemonSet controller must not create pods on a node.
type rule func(*v1.Node) bool

// noRule is the rule of the controller up to Kubernetes v1.37, which always creates pods.
func noRule(*v1.Node) bool { return false }

// ruleOfTheKEP is the rule of KEP-6249.
func ruleOfTheKEP(node *v1.Node) bool { return isTrue(node, shutdownInProgress) }

// ruleOfItsFirstDrafts is the KEP's rule before September 29, 2026.
func ruleOfItsFirstDrafts(node *v1.Node) bool {
	return isTrue(node, shutdownInProgress) && isTrue(node, drainInProgress)
}

// isTrue reports whether the node has the condition with the status True.
func isTrue(node *v1.Node, conditionType v1.NodeConditionType) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == conditionType && c.Status == v1.ConditionTrue
	})
}

// daemonSet simulates the DaemonSet controller for one node.
type daemonSet struct {
	node       *testNode
	suppresses rule
	created    int // the number of pods that it has created
}

// sync deletes failed pods, and creates a pod if the node has none and the rule allows it. It reads the node after the
// pods: a node that has killed its pod published the shutdown before the kill, so that sync sees the shutdown.
func (d *daemonSet) sync() {
	hasPod := false
	for _, pod := range d.node.listPods() {
		if pod.Status.Phase != v1.PodFailed {
			hasPod = true
			continue
		}
		require.NoError(d.node.t, d.node.pods().Delete(d.node.t.Context(), pod.Name, *metav1.NewDeleteOptions(0)))
	}
	if hasPod || d.suppresses(d.node.getNode()) {
		return
	}
	d.created++
	_, err := d.node.pods().Create(d.node.t.Context(), &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "agent-", Namespace: metav1.NamespaceDefault},
		Spec:       v1.PodSpec{NodeName: d.node.name, Containers: []v1.Container{{Name: "agent", Image: "agent:1"}}},
	}, metav1.CreateOptions{})
	require.NoError(d.node.t, err)
}

// syncRepeatedly runs the controller and the node's admission n times, and returns how many pods were created.
func (d *daemonSet) syncRepeatedly(n int) (created int) {
	before := d.created
	for range n {
		d.sync()
		d.node.admitPods()
	}
	return d.created - before
}

// testNode is a node with an agent.
type testNode struct {
	t       *testing.T
	api     kubernetes.Interface
	name    string
	gate    featuregate.FeatureGate
	host    *shutdowntest.Host
	manager *shutdown.Manager

	publishedStates chan shutdown.NodeState // states that the API server has accepted
	nodesAtKill     chan *v1.Node           // the API server's node at each kill
	reports         chan shutdown.Report

	mu      sync.Mutex // guards running
	running []*v1.Pod
}

// newTestNode creates a ready node without an agent. gateOn is the feature gate DaemonSetGracefulNodeShutdown of the
// agent that start starts.
func newTestNode(t *testing.T, api kubernetes.Interface, name string, gateOn bool) *testNode {
	t.Helper()
	gate := featuregate.NewFeatureGate()
	require.NoError(t, shutdown.AddFeatureGates(gate))
	require.NoError(t, gate.SetFromMap(map[string]bool{string(shutdown.DaemonSetGracefulNodeShutdown): gateOn}))
	_, err := api.CoreV1().Nodes().Create(t.Context(), &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return &testNode{
		t: t, api: api, name: name, gate: gate, host: &shutdowntest.Host{},
		publishedStates: make(chan shutdown.NodeState, 10), nodesAtKill: make(chan *v1.Node, 10), reports: make(chan shutdown.Report, 10),
	}
}

// pods returns a client for the pods of namespace default.
func (n *testNode) pods() corev1.PodInterface { return n.api.CoreV1().Pods(metav1.NamespaceDefault) }

// listPods returns the node's pods from the API server.
func (n *testNode) listPods() []v1.Pod {
	list, err := n.pods().List(n.t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + n.name})
	require.NoError(n.t, err)
	return list.Items
}

// getNode returns the node from the API server.
func (n *testNode) getNode() *v1.Node {
	node, err := n.api.CoreV1().Nodes().Get(n.t.Context(), n.name, metav1.GetOptions{})
	require.NoError(n.t, err)
	return node
}

// publisher sends each published state to the test.
type publisher struct {
	*apistatus.Reporter
	publishedStates chan<- shutdown.NodeState
}

// PublishNode publishes a state, and sends it to the test if the API server has accepted it.
func (p publisher) PublishNode(ctx context.Context, state shutdown.NodeState) error {
	err := p.Reporter.PublishNode(ctx, state)
	if err == nil {
		p.publishedStates <- state
	}
	return err
}

// start starts an agent and returns a function that stops it.
func (n *testNode) start() (stop func()) {
	reporter, err := apistatus.New(apistatus.Options{Client: n.api, NodeName: n.name, Gates: n.gate, RequestTimeout: time.Minute})
	require.NoError(n.t, err)
	n.manager, err = shutdown.NewManager(shutdown.Options{
		Config: plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: time.Minute}},
		// The server may be slow.
		Plan:   plan.Options{PublishTimeout: time.Minute, StatusesTimeout: time.Minute},
		Source: n.host,
		ListPods: shutdown.ListPodsFunc(func() []*v1.Pod {
			n.mu.Lock()
			defer n.mu.Unlock()
			return slices.Clone(n.running)
		}, nil),
		Killer:   &shutdowntest.Killer{OnKill: n.kill},
		Reporter: publisher{reporter, n.publishedStates},
		OnReport: func(_ context.Context, report shutdown.Report) { n.reports <- report },
	})
	require.NoError(n.t, err)
	ctx, cancel := context.WithCancel(n.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.manager.Run(ctx) }()
	<-n.manager.Ready()
	require.False(n.t, (<-n.publishedStates).ShuttingDown, "an agent first publishes the current state")
	return func() {
		cancel()
		require.NoError(n.t, <-ended)
	}
}

// kill ends a pod, and sends the node, as the API server has it, to nodesAtKill.
func (n *testNode) kill(pod *v1.Pod) {
	node, err := n.api.CoreV1().Nodes().Get(n.t.Context(), n.name, metav1.GetOptions{})
	if err != nil {
		n.t.Error(err) // not with require, which may only be used in the test's goroutine
	}
	n.nodesAtKill <- node
	n.mu.Lock()
	defer n.mu.Unlock()
	n.running = slices.DeleteFunc(n.running, func(p *v1.Pod) bool { return p.UID == pod.UID })
}

// shutDown shuts the node down, and waits until its pods have ended.
func (n *testNode) shutDown() {
	n.host.Announce(source.Event{Kind: source.KindReboot})
	require.True(n.t, (<-n.publishedStates).ShuttingDown)
	require.Empty(n.t, (<-n.reports).Errors)
}

// admitPods starts the node's pending pods, or refuses them as a kubelet does.
func (n *testNode) admitPods() {
	for _, pod := range n.listPods() {
		if pod.Status.Phase != v1.PodPending {
			continue
		}
		pod.Status.Phase = v1.PodRunning
		if decision := n.manager.Admit(&pod); !decision.Admit {
			pod.Status.Phase, pod.Status.Reason, pod.Status.Message = v1.PodFailed, decision.Reason, decision.Message
		}
		accepted, err := n.pods().UpdateStatus(n.t.Context(), &pod, metav1.UpdateOptions{})
		require.NoError(n.t, err)
		if accepted.Status.Phase == v1.PodRunning {
			n.mu.Lock()
			n.running = append(n.running, accepted)
			n.mu.Unlock()
		}
	}
}

// While a node shuts down, the DaemonSet controller should create no pods on it: the node would refuse them (k/k#122912). That is
// so with the rule of KEP-6249, by which the condition GracefulNodeShutdownInProgress suffices. The rule of the KEP's first
// drafts also requires DrainInProgress, which an agent sets only with the feature gate DaemonSetGracefulNodeShutdown. Without
// that gate, or without a rule, each sync creates a pod. After the shutdown the controller creates one again.
func TestTheDaemonSetControllerCreatesNoPodsDuringAShutdown(t *testing.T) {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: apiserverprocess.Start(t), QPS: -1})
	require.NoError(t, err)
	const syncs = 5
	for name, test := range map[string]struct {
		suppresses rule // the controller's
		gateOn     bool // the agent's
		created    int  // the number of pods that the controller creates during a shutdown
	}{ // the names of the cases are the names of their nodes
		"no-rule":                  {suppresses: noRule, gateOn: true, created: syncs},
		"rule-of-the-kep":          {suppresses: ruleOfTheKEP, gateOn: true},
		"rule-of-the-kep-gate-off": {suppresses: ruleOfTheKEP, gateOn: false},
		"first-drafts":             {suppresses: ruleOfItsFirstDrafts, gateOn: true},
		"first-drafts-gate-off":    {suppresses: ruleOfItsFirstDrafts, gateOn: false, created: syncs},
	} {
		t.Run(name, func(t *testing.T) {
			node := newTestNode(t, client, name, test.gateOn)
			controller := &daemonSet{node: node, suppresses: test.suppresses}
			stop := node.start()
			require.Equal(t, 1, controller.syncRepeatedly(syncs), "the node has its pod")

			// The node shuts down twice. The first shutdown is cancelled, and the second ends with a reboot.
			cancel := func() {
				node.host.Cancel()
				require.False(t, (<-node.publishedStates).ShuttingDown)
			}
			reboot := func() {
				stop()
				node.host.SetPending(nil)
				stop = node.start()
			}
			for _, endShutdown := range []func(){cancel, reboot} {
				node.shutDown()
				nodeAtKill := <-node.nodesAtKill
				require.Equal(t, test.created == 0, test.suppresses(nodeAtKill), "when the pod is killed")
				require.Equal(t, test.created, controller.syncRepeatedly(syncs))
				endShutdown()
				after := node.getNode()
				require.False(t, isTrue(after, shutdownInProgress) || isTrue(after, drainInProgress), "%v", after.Status.Conditions)
				require.Equal(t, 1, controller.syncRepeatedly(syncs), "the pod is back")
			}
			stop()
		})
	}
}
