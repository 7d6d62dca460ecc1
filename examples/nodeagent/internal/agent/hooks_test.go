package agent_test

import (
	"bytes"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/klog/v2/textlogger"
	"k8s.io/utils/ptr"
)

// withHook gives a pod's container a preStop hook.
func withHook(pod *v1.Pod, hook v1.LifecycleHandler) {
	pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PreStop: &hook}
}

func TestHooksAreTold(t *testing.T) {
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
			inBubble(t, func(t *testing.T, b *bench) {
				withHook(b.pod("web", 0, test.script), test.hook)
				b.run()
				b.signals <- syscall.SIGTERM
				require.NoError(t, b.end())
				for _, want := range test.want {
					require.Contains(t, b.output(), want)
				}
			})
		})
	}
}

// What a kubelet records in the API server is in the log: a warning always, the
// rest at verbosity 1.
func TestEventsAreLogged(t *testing.T) {
	for verbosity, killing := range map[int]bool{0: false, 1: true} {
		inBubble(t, func(t *testing.T, b *bench) {
			var log bytes.Buffer
			b.opts.Logger = textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log), textlogger.Verbosity(verbosity)))
			withHook(b.pod("web", 0, "exec fails"), v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"drain"}}})
			b.run()
			b.signals <- syscall.SIGTERM
			require.NoError(t, b.end())
			require.Contains(t, log.String(), `object="ns/web spec.containers{app}" type="Warning" reason="FailedPreStopHook" message="PreStopHook failed"`)
			require.Equal(t, killing, bytes.Contains(log.Bytes(), []byte(`reason="Killing" message="Stopping container app"`)))
		})
	}
}

// An httpGet hook goes to the host, in whose network every pod is.
func TestHTTPHookGoesToTheHost(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		// Nobody listens on port 0: what is asked for is in the error.
		withHook(b.pod("web", 0, ""), v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{Path: "/drain", Port: intstr.FromInt32(1)}})
		b.opts.Pods[0].Spec.TerminationGracePeriodSeconds = ptr.To(int64(3))
		b.run()
		b.signals <- syscall.SIGTERM
		require.NoError(t, b.end())
		require.Contains(t, b.output(), "had a preStop hook (request to 1/drain) that failed: ")
		require.Contains(t, b.output(), "127.0.0.1:1")
		require.Less(t, time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)), time.Minute)
	})
}

// Whoever may read the log of an agent may not know what its pods know.
func TestSecretsOfHooksAreNotTold(t *testing.T) {
	for name, hook := range map[string]v1.LifecycleHandler{
		"command": {Exec: &v1.ExecAction{Command: []string{"curl", "-H", "Authorization: Bearer s3cret", "http://localhost/?key=s3cret"}}},
		"request": {HTTPGet: &v1.HTTPGetAction{Path: "/drain?key=s3cret", Port: intstr.FromInt32(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				var log bytes.Buffer
				b.opts.Logger = textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log)))
				withHook(b.pod("web", 0, "exec fails"), hook)
				b.run()
				b.signals <- syscall.SIGTERM
				require.NoError(t, b.end())
				require.Contains(t, b.output(), "its preStop hook failed")
				require.NotContains(t, b.output()+log.String(), "s3cret")
			})
		})
	}
}
