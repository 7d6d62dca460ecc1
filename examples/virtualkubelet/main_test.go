//go:build unix

package main

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/internal/apiserverprocess"
)

// waitTimeout is the limit of each wait for the cluster. Only a failure takes as long.
const waitTimeout = time.Minute

// program is the command of this package as a process, with a client of its API server.
type program struct {
	*testing.T

	cmd    *exec.Cmd
	client kubernetes.Interface
}

// start starts the program and an API server, and waits until its node is ready.
func start(t *testing.T, args ...string) program {
	t.Helper()
	server := apiserverprocess.Start(t)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server, QPS: -1})
	require.NoError(t, err)
	binary, err := os.Executable()
	require.NoError(t, err)
	p := program{T: t, client: client}
	p.cmd = exec.Command(binary, append(args, "--kubeconfig", kubeconfig(t, server))...)
	p.cmd.Env = append(os.Environ(), asProgram+"=1")
	var logged bytes.Buffer
	p.cmd.Stderr = &logged
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
		if t.Failed() {
			t.Logf("the program's log:\n%s", logged.String())
		}
	})
	p.waitFor(func() bool {
		node, err := client.CoreV1().Nodes().Get(t.Context(), "processes", metav1.GetOptions{})
		return err == nil && isReady(node)
	})
	return p
}

// isReady reports whether the node is ready.
func isReady(node *v1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == v1.NodeReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}

// kubeconfig writes a kubeconfig file for an API server and returns its path.
func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	config := api.NewConfig()
	config.Clusters["cluster"] = &api.Cluster{Server: server}
	config.Contexts["context"] = &api.Context{Cluster: "cluster"}
	config.CurrentContext = "context"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	return path
}

// waitFor waits until the condition is true, at most waitTimeout.
func (p program) waitFor(condition func() bool) {
	p.Helper()
	require.Eventually(p, condition, waitTimeout, 10*time.Millisecond)
}

// pod returns a pod of the API server, or nil.
func (p program) pod(name string) *v1.Pod {
	pod, err := p.client.CoreV1().Pods("default").Get(p.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(p, err)
	return pod
}

// runPod creates a pod that exits with code 3 on SIGTERM, after a sleep hook of hookSeconds. It waits until the pod
// handles SIGTERM.
func (p program) runPod(name string, hookSeconds int64) {
	ready := filepath.Join(p.TempDir(), "ready")
	p.create(name, `trap "exit 3" TERM; touch `+ready+`; while :; do sleep 0.1; done`, hookSeconds)
	p.waitFor(func() bool {
		_, err := os.Stat(ready)
		return err == nil && p.pod(name).Status.Phase == v1.PodRunning
	})
}

// create creates a pod that runs a shell command. Its preStop hook sleeps for hookSeconds.
func (p program) create(name, command string, hookSeconds int64) {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PodSpec{
			NodeName: "processes", TerminationGracePeriodSeconds: ptr.To(int64(30)),
			Containers: []v1.Container{{
				Name: "app", Image: "none", Command: []string{"sh", "-c", command},
				Lifecycle: &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: hookSeconds}}},
			}},
		},
	}
	_, err := p.client.CoreV1().Pods("default").Create(p.Context(), pod, metav1.CreateOptions{})
	require.NoError(p, err)
}

// requireExitCode3 requires that a pod of runPod has ended with exit code 3, which shows that it received SIGTERM.
func requireExitCode3(t require.TestingT, pod *v1.Pod) {
	require.NotNil(t, pod)
	require.Equal(t, v1.PodFailed, pod.Status.Phase)
	require.NotNil(t, pod.Status.ContainerStatuses[0].State.Terminated)
	require.EqualValues(t, 3, pod.Status.ContainerStatuses[0].State.Terminated.ExitCode)
}

// One pod is deleted. Another is drained, because the program gets SIGTERM. Each runs its preStop hook of 1 s, exits
// with code 3 on SIGTERM, and has this exit code in the API server.
func TestDeletedAndDrainedPodsRunTheirHooksAndExit(t *testing.T) {
	p := start(t)
	const hookSeconds = 1
	p.runPod("deleted", hookSeconds)
	require.NoError(t, p.client.CoreV1().Pods("default").Delete(t.Context(), "deleted", metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(20))}))
	var deleted *v1.Pod
	p.waitFor(func() bool {
		deleted = p.pod("deleted")
		return deleted == nil || deleted.Status.Phase == v1.PodFailed
	})
	requireExitCode3(t, deleted)
	p.waitFor(func() bool { return p.pod("deleted") == nil })

	p.runPod("drained", hookSeconds)
	signalled := time.Now()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, p.cmd.Wait())
	require.GreaterOrEqual(t, time.Since(signalled), time.Second, "the preStop hook slept")
	requireExitCode3(t, p.pod("drained"))
}

// The program gets SIGTERM and drains a pod. This takes 4 s for the pod's sleep hook if the program runs containers,
// and 2 s for the stop of the job if it runs whole pods. In the meantime pods are created until the node refuses one.
// The statuses in the API server say which pods were refused and which were drained.
func TestSIGTERMRefusesNewPodsAndDrainsTheOthers(t *testing.T) {
	service := httptest.NewServer(newJobService(2 * time.Second))
	t.Cleanup(service.Close)
	for kind, args := range map[string][]string{"containers": nil, "whole pods": {"--jobs", service.URL}} {
		t.Run(kind, func(t *testing.T) {
			p := start(t, args...)
			const sleepHook, noHook = 4, 0 // in seconds
			p.create("drained", "sleep 600", sleepHook)
			p.waitFor(func() bool { return p.pod("drained").Status.Phase == v1.PodRunning })
			require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))

			// A pod that was created before the program handled the signal runs, or is drained. Such a pod may have no other status
			// until the end, so the next pod does not wait for it.
			var late []string // the names of the pods that are created in the meantime
			var refused *v1.Pod
			p.waitFor(func() bool {
				for _, name := range late {
					refused = p.pod(name)
					if refused.Status.Phase == v1.PodFailed && refused.Status.Reason != "Terminated" {
						return true
					}
				}
				late = append(late, fmt.Sprintf("late-%d", len(late)))
				p.create(late[len(late)-1], "sleep 600", noHook)
				return false
			})

			require.Equal(t, "NodeShutdown", refused.Status.Reason)
			require.Empty(t, refused.Status.ContainerStatuses)
			require.NoError(t, p.cmd.Wait())
			require.Equal(t, v1.PodFailed, p.pod("drained").Status.Phase)
			require.Equal(t, "Terminated", p.pod("drained").Status.Reason)
		})
	}
}
