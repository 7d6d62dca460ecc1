//go:build go1.25

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// The cases of KEP-3960's end-to-end tests. A pod with a sleep hook is terminated. Its container obeys its stop signal at once,
// so the pod is gone as soon as the sleep has ended or was cut.
func TestKEP3960SleepAction(t *testing.T) {
	for name, test := range map[string]struct {
		sleep, grace int64 // seconds
		script       lifecycletest.Script
		reduceTo     int64         // the grace period is reduced to these seconds after 2 s, counted from then; 0: it is not
		gone         time.Duration // when the pod is gone
		hook         lifecycle.HookOutcome
		cause        lifecycle.Cause // why the sleep was cut; "": it was not
	}{
		"sleep shorter than the grace": {sleep: 5, grace: 30, gone: 5 * time.Second, hook: lifecycle.HookCompleted},
		"sleep of 0":                   {sleep: 0, grace: 30, gone: 0, hook: lifecycle.HookCompleted},
		"sleep of 1 s":                 {sleep: 1, grace: 30, gone: time.Second, hook: lifecycle.HookCompleted},
		"sleep that leaves 1 s":        {sleep: 29, grace: 30, gone: 29 * time.Second, hook: lifecycle.HookCompleted},
		"the container exits":          {sleep: 20, grace: 30, script: lifecycletest.Script{ExitAfter: 10 * time.Second}, gone: 10 * time.Second, hook: lifecycle.HookCut, cause: lifecycle.CauseContainerExited},
		"grace greater":                {sleep: 15, grace: 20, gone: 15 * time.Second, hook: lifecycle.HookCompleted},
		"grace equal":                  {sleep: 20, grace: 20, gone: 20 * time.Second, hook: lifecycle.HookCompleted},
		"grace smaller":                {sleep: 20, grace: 15, gone: 15 * time.Second, hook: lifecycle.HookCut, cause: lifecycle.CauseGraceSpent},
		"reduced at runtime":           {sleep: 50, grace: 100, reduceTo: 15, gone: (2 + 15) * time.Second, hook: lifecycle.HookCut, cause: lifecycle.CauseShortened},
		"reduced, but enough":          {sleep: 10, grace: 100, reduceTo: 15, gone: 10 * time.Second, hook: lifecycle.HookCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, graceSeconds(test.grace), func(b *testBed) {
				b.addMainWithHook("nginx", sleepHandler(test.sleep), test.script)
				termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
				if test.reduceTo > 0 {
					b.sleepUntil(2 * time.Second)
					b.Terminate(b.Context(), b.pod, lifecycle.Request{GracePeriodSeconds: &test.reduceTo})
				}
				<-termination.Done()
				require.Equal(b, test.gone, b.elapsed())
				hook := termination.Result().Containers[0].Hook
				require.Equal(b, test.hook, hook.Outcome)
				require.Equal(b, test.cause, hook.Cause)
				b.requireEvents("Killing")
			})
		})
	}
}
