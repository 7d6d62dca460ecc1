package agent_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/klog/v2/textlogger"
	"k8s.io/utils/ptr"
)

// setPreStopHook sets the preStop hook of a pod's only container.
func setPreStopHook(pod *v1.Pod, hook v1.LifecycleHandler) {
	pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PreStop: &hook}
}

func TestOutputDescribesHooks(t *testing.T) {
	command := &v1.ExecAction{Command: []string{"drain", "--all"}}
	for name, test := range map[string]struct {
		hook   v1.LifecycleHandler
		script string
		want   []string
	}{
		"command": {v1.LifecycleHandler{Exec: command}, "exec takes 1s", []string{
			"runs its preStop hook: command drain …", "stopped in time, after a preStop hook of 1.0 s",
		}},
		"command fails": {v1.LifecycleHandler{Exec: command}, "exec fails", []string{
			"stopped in time, its preStop hook failed", "ns/web: container app had a preStop hook (command drain …) that failed: ",
		}},
		"command is too slow": {v1.LifecycleHandler{Exec: command}, "exec takes 1m", []string{
			"its preStop hook was cut off", "had a preStop hook (command drain …) that was cut off after 5.0 s.",
		}},
		"sleep": {v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 2}}, "", []string{
			"runs its preStop hook: sleep of 2 s", "stopped in time, after a preStop hook of 2.0 s",
		}},
		"tcpSocket": {v1.LifecycleHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt32(80)}}, "", []string{
			"its preStop hook failed", "had a preStop hook (unknown) that failed: ",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *testbed) {
				setPreStopHook(b.addPod("web", 0, test.script), test.hook)
				b.run()
				require.NoError(t, b.terminate())
				for _, want := range test.want {
					require.Contains(t, b.output(), want)
				}
			})
		})
	}
}

// The log has the events that a kubelet sends to the API server: warnings always, others
// from verbosity 1 on.
func TestEventsAreLogged(t *testing.T) {
	for verbosity, killing := range map[int]bool{0: false, 1: true} {
		inBubble(t, func(t *testing.T, b *testbed) {
			var log bytes.Buffer
			b.opts.Logger = textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log), textlogger.Verbosity(verbosity)))
			setPreStopHook(b.addPod("web", 0, "exec fails"), v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"drain"}}})
			b.run()
			require.NoError(t, b.terminate())
			require.Contains(t, log.String(), `object="ns/web spec.containers{app}" type="Warning" reason="FailedPreStopHook" message="PreStopHook failed"`)
			require.Equal(t, killing, bytes.Contains(log.Bytes(), []byte(`reason="Killing" message="Stopping container app"`)))
		})
	}
}

// An httpGet hook goes to the host, because every pod uses the network of the host.
func TestHTTPHookGoesToTheHost(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		// Nobody listens on port 1; the error has the address that was tried.
		setPreStopHook(b.addPod("web", 0, ""), v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{Path: "/drain", Port: intstr.FromInt32(1)}})
		b.opts.Pods[0].Spec.TerminationGracePeriodSeconds = ptr.To(int64(3))
		b.run()
		require.NoError(t, b.terminate())
		require.Contains(t, b.output(), "had a preStop hook (request to 1/drain) that failed: ")
		require.Contains(t, b.output(), "127.0.0.1:1")
		require.Less(t, time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)), time.Minute)
	})
}

// Neither the output nor the log has the secrets of a hook's command or request.
func TestSecretsOfHooksAreNotShown(t *testing.T) {
	for name, hook := range map[string]v1.LifecycleHandler{
		"command": {Exec: &v1.ExecAction{Command: []string{"curl", "-H", "Authorization: Bearer s3cret", "http://localhost/?key=s3cret"}}},
		"request": {HTTPGet: &v1.HTTPGetAction{Path: "/drain?key=s3cret", Port: intstr.FromInt32(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *testbed) {
				var log bytes.Buffer
				b.opts.Logger = textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log)))
				setPreStopHook(b.addPod("web", 0, "exec fails"), hook)
				b.run()
				require.NoError(t, b.terminate())
				require.Contains(t, b.output(), "its preStop hook failed")
				require.NotContains(t, b.output()+log.String(), "s3cret")
			})
		})
	}
}
