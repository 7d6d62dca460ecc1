//go:build go1.25

package lifecycletest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

const (
	second    = time.Second
	noTimeout = 0 // of RunInContainer
)

// pod is the pod of all tests; no test changes it.
var pod = &v1.Pod{
	ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "uid"},
	Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "app"}, {Name: "web"}}},
}

// StopContainer sends the stop signal, waits until the container exits, and kills it after the timeout. The
// runtime records the call and the exit.
func TestStopContainer(t *testing.T) {
	for name, test := range map[string]struct {
		script  lifecycletest.Script
		timeout int64                   // in seconds
		took    time.Duration           // how long StopContainer takes; zero: it returns at once
		by      lifecycletest.ExitCause // what ended the container
		code    int32                   // its exit code
	}{
		"exits immediately":               {timeout: 30, by: lifecycletest.ByTerm},
		"exits after its stop signal":     {script: lifecycletest.Script{ExitAfterTerm: 3 * second}, timeout: 30, took: 3 * second, by: lifecycletest.ByTerm},
		"exits too late":                  {script: lifecycletest.Script{ExitAfterTerm: 9 * second}, timeout: 5, took: 5 * second, by: lifecycletest.ByKill, code: 137},
		"ignores its stop signal":         {script: lifecycletest.Script{IgnoreTerm: true}, timeout: 5, took: 5 * second, by: lifecycletest.ByKill, code: 137},
		"timeout of 0":                    {timeout: 0, by: lifecycletest.ByKill, code: 137},
		"negative timeout":                {timeout: -1, by: lifecycletest.ByKill, code: 137},
		"stop returns early":              {script: lifecycletest.Script{StopReturnsEarly: true}, timeout: 5, by: lifecycletest.ByTerm},
		"exits by itself during the stop": {script: lifecycletest.Script{ExitAfter: 2 * second, IgnoreTerm: true}, timeout: 5, took: 2 * second, by: lifecycletest.ByItself},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := lifecycletest.NewRuntime()
				rt.Start(pod, "app", "app", test.script)
				began := time.Now()
				require.NoError(t, rt.StopContainer(t.Context(), "app", test.timeout))
				require.Equal(t, test.took, time.Since(began))
				<-rt.Exited("app")
				require.Equal(t, []lifecycletest.Exit{{ID: "app", By: test.by, Code: test.code, At: time.Now()}}, rt.Exits())
				require.Equal(t, []lifecycletest.Stop{{ID: "app", TimeoutSeconds: test.timeout, At: began}}, rt.Stops())
			})
		})
	}
}

// StopContainer succeeds for a container that has exited, and returns ErrContainerNotFound for one that was removed.
func TestStopOfAnExitedOrUnknownContainer(t *testing.T) {
	rt := lifecycletest.NewRuntime()
	rt.Start(pod, "app", "app", lifecycletest.Script{})
	rt.Exit("app")
	require.NoError(t, rt.StopContainer(t.Context(), "app", 30))
	rt.Remove("app")
	require.ErrorIs(t, rt.StopContainer(t.Context(), "app", 30), lifecycle.ErrContainerNotFound)
}

// The exit of a removed container stays recorded: its Exited channel is closed, and Exit adds no second one. Exited of an ID that
// never existed is nil.
func TestExitOfARemovedContainerStaysRecorded(t *testing.T) {
	rt := lifecycletest.NewRuntime()
	rt.Start(pod, "app", "app", lifecycletest.Script{})
	rt.Remove("app")
	<-rt.Exited("app")
	rt.Exit("app")
	require.Len(t, rt.Exits(), 1)
	require.Nil(t, rt.Exited("other"))
}

// A StopContainer call hangs and ignores its context, which ends after 1 s. It returns only when Release is called, after a
// minute. Calls after Release do not hang.
func TestReleaseEndsHangsThatIgnoreTheirContext(t *testing.T) {
	const allStops = -1
	synctest.Test(t, func(t *testing.T) {
		rt := lifecycletest.NewRuntime()
		rt.Start(pod, "app", "app", lifecycletest.Script{HangStops: allStops, HangIgnoresContext: true})
		ctx, cancel := context.WithTimeout(t.Context(), second)
		defer cancel()
		time.AfterFunc(time.Minute, rt.Release)
		began := time.Now()
		require.ErrorIs(t, rt.StopContainer(ctx, "app", 30), lifecycletest.ErrScripted)
		require.Equal(t, time.Minute, time.Since(began))
		require.ErrorIs(t, rt.StopContainer(t.Context(), "app", 30), lifecycletest.ErrScripted)
		rt.Release() // may be called again
	})
}

// A container is started with the ID of a running one, which ends the old run. The old run would have exited by itself after 1 s:
// that must not end the new run.
func TestStartReplacesAContainerWithTheSameID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := lifecycletest.NewRuntime()
		rt.Start(pod, "app", "app", lifecycletest.Script{ExitAfter: second})
		oldRunExited := rt.Exited("app")
		rt.Start(pod, "app", "app", lifecycletest.Script{})
		<-oldRunExited
		<-time.After(time.Minute)
		require.Len(t, rt.Exits(), 1, "only the old run")
		require.NoError(t, rt.StopContainer(t.Context(), "app", 30))
		require.Equal(t, lifecycletest.ByTerm, rt.Exits()[1].By)
	})
}

// A command runs until it ends, its timeout has passed, or the container exits, whichever comes first. The runtime
// records the call.
func TestRunInContainer(t *testing.T) {
	sleeps3s := func(ctx context.Context, _ []string) ([]byte, error) {
		select {
		case <-time.After(3 * second):
			return []byte("slept"), nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	for name, test := range map[string]struct {
		script  lifecycletest.Script
		timeout time.Duration // noTimeout: none
		took    time.Duration // how long RunInContainer takes; zero: it returns at once
		output  string
		err     string
	}{
		"no script":                   {},
		"command ends":                {script: lifecycletest.Script{Exec: sleeps3s}, took: 3 * second, output: "slept"},
		"command exceeds its timeout": {script: lifecycletest.Script{Exec: sleeps3s}, timeout: second, took: second, err: "context deadline exceeded"},
		"container exits during the command": {
			script: lifecycletest.Script{Exec: sleeps3s, ExitAfter: 2 * second},
			took:   2 * second, err: "container has exited",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := lifecycletest.NewRuntime()
				rt.Start(pod, "app", "app", test.script)
				began := time.Now()
				output, err := rt.RunInContainer(t.Context(), "app", []string{"drain", "now"}, test.timeout)
				if test.err == "" {
					require.NoError(t, err)
				} else {
					require.EqualError(t, err, test.err)
				}
				require.Equal(t, test.output, string(output))
				require.Equal(t, test.took, time.Since(began))
				require.Equal(t, []lifecycletest.Exec{{ID: "app", Cmd: []string{"drain", "now"}}}, rt.Execs())
			})
		})
	}
}

// A command cannot run in an unknown or an exited container, and the errors distinguish the two.
func TestRunInContainerNeedsARunningContainer(t *testing.T) {
	rt := lifecycletest.NewRuntime()
	_, err := rt.RunInContainer(t.Context(), "app", []string{"true"}, noTimeout)
	require.ErrorIs(t, err, lifecycle.ErrContainerNotFound)
	rt.Start(pod, "app", "app", lifecycletest.Script{})
	rt.Exit("app")
	_, err = rt.RunInContainer(t.Context(), "app", []string{"true"}, noTimeout)
	require.EqualError(t, err, "container has exited")
}
