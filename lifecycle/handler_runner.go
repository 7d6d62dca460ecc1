package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"k8s.io/component-base/featuregate"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/features"
	"github.com/kubegrace/kubegrace/internal/nilcheck"
	"github.com/kubegrace/kubegrace/lifecycle/internal/hookhttp"
	"github.com/kubegrace/kubegrace/metrics"
)

// defaultUserAgent is the User-Agent of httpGet hooks in a kubelet of Kubernetes 1.37.
const defaultUserAgent = "kube-lifecycle/1.37"

// handlerKind is the kind of a hook's handler. It serves as a metric label.
type handlerKind string

const (
	kindExec    handlerKind = "exec"
	kindHTTPGet handlerKind = "httpGet"
	kindSleep   handlerKind = "sleep"
	kindOther   handlerKind = "other" // no handler, or tcpSocket, which cannot be run
)

// HandlerRunnerOptions configures the runner of [NewHandlerRunner]. The zero value runs httpGet and sleep
// hooks; exec hooks need Commands.
type HandlerRunnerOptions struct {
	// Commands runs the commands of exec hooks. If it is nil, every exec hook fails.
	Commands CommandRunner
	// HTTP sends the requests of httpGet hooks. It must end a request when the request's context
	// ends, and keep no connection open after that.
	//
	// nil means a client like the kubelet's. That client does not verify certificates, and follows
	// at most ten redirects, on the same host only. Unlike the kubelet's, it does not send a hook's
	// headers to another port or scheme.
	HTTP HTTPDoer
	// PodIP returns the IP address of a pod for an httpGet hook without a host. The hook fails if
	// PodIP returns an error or "". nil means the first of the pod status's podIPs, or else its
	// podIP.
	PodIP func(context.Context, *v1.Pod) (string, error)
	// UserAgent is the User-Agent header of httpGet hooks that do not set one. "" means that of a
	// kubelet, kube-lifecycle/1.37.
	UserAgent string
	// FailOnHTTPStatus makes a hook fail if the response's status is not 2xx. A redirect to another
	// host fails too, because it is not followed. If FailOnHTTPStatus is false, any response is a
	// success, as in the kubelet.
	FailOnHTTPStatus bool
	// Events records that an HTTPS hook was answered in plain HTTP; nil: no event is
	// recorded.
	Events EventRecorder
	// Metrics counts hooks that were answered in plain HTTP, and sleeps that ended
	// early; nil: nothing is counted.
	Metrics *metrics.Lifecycle
	// Gates is read once, for [PodLifecycleSleepAction]; nil: its default.
	Gates featuregate.FeatureGate
}

// handlerRunner is the [HandlerRunner] of this package. It has no state but its options.
type handlerRunner struct {
	HandlerRunnerOptions

	sleepEnabled bool  // PodLifecycleSleepAction is on
	noIP         error // that a pod has no IP address
}

// NewHandlerRunner makes a runner of exec, httpGet and sleep hooks. It behaves like the
// kubelet's, and returns the same messages, with these differences:
//
//   - The request of an httpGet hook ends with ctx, and uses no proxy. The kubelet's request
//     ignores ctx (k/k#103300).
//   - A command's timeout is the time until ctx's deadline, and after the deadline the command
//     does not run. The kubelet sets no timeout.
//   - A sleep does not fail if ctx ends with the cause [CauseContainerExited] (k/k#134338), or if less
//     than 100 ms of it are left.
//
// A hook ends when ctx ends, and its error then wraps the cause. The runner may be used concurrently.
// Every argument of Run but ctx may be nil. An option that holds a nil pointer counts as nil. The runner does not recover a panic of Commands, HTTP or
// PodIP; a [Terminator] does.
func NewHandlerRunner(opts HandlerRunnerOptions) HandlerRunner {
	opts.UserAgent = cmp.Or(opts.UserAgent, defaultUserAgent)
	if opts.HTTP == nil || nilcheck.IsTypedNil(opts.HTTP) {
		opts.HTTP = hookhttp.NewClient(nil)
	}
	if nilcheck.IsTypedNil(opts.Commands) {
		opts.Commands = nil // so that exec hooks fail with an error
	}
	if nilcheck.IsTypedNil(opts.Events) {
		opts.Events = nil
	}
	if nilcheck.IsTypedNil(opts.Gates) {
		opts.Gates = nil
	}
	noIP := errNoPodIP
	if opts.PodIP == nil {
		opts.PodIP, noIP = statusIP, errNoStatusIP
	}
	return &handlerRunner{HandlerRunnerOptions: opts, sleepEnabled: features.Enabled(opts.Gates, PodLifecycleSleepAction), noIP: noIP}
}

// Run implements [HandlerRunner]. If a handler has several fields set, Run uses the first of
// exec, httpGet and sleep. A handler with none of them, such as tcpSocket, is an error, as
// in the kubelet.
func (r *handlerRunner) Run(ctx context.Context, containerID string, pod *v1.Pod, container *v1.Container, handler *v1.LifecycleHandler) (string, error) {
	var err error
	var hook, action, output string
	switch kindOf(handler) {
	case kindExec:
		hook, action = "Exec", fmt.Sprint(handler.Exec.Command)
		output, err = r.exec(ctx, containerID, handler.Exec.Command)
	case kindHTTPGet:
		hook, action = "HTTP", handler.HTTPGet.Path
		err = r.get(ctx, pod, container, handler.HTTPGet)
	case kindSleep:
		hook, action = "Sleep", strconv.FormatInt(handler.Sleep.Seconds, 10)
		err = r.sleep(ctx, handler.Sleep.Seconds)
	case kindOther:
		err = fmt.Errorf("invalid handler: %v", handler)
		return "Cannot run handler: " + err.Error(), err
	}
	if err != nil {
		return hookFailed(hook, action, pod, container, err) + output, err
	}
	return "", nil
}

// kindOf returns the kind of a handler, which may be nil.
func kindOf(handler *v1.LifecycleHandler) handlerKind {
	switch {
	case handler == nil:
		return kindOther
	case handler.Exec != nil:
		return kindExec
	case handler.HTTPGet != nil:
		return kindHTTPGet
	case handler.Sleep != nil:
		return kindSleep
	default:
		return kindOther
	}
}

// hookFailed returns the kubelet's message for a hook that failed. It does not use fmt, because fmt needs
// more stack: the stacks of all sleeps would grow when many are cancelled at once.
func hookFailed(hook, action string, pod *v1.Pod, container *v1.Container, err error) string {
	name := ""
	if container != nil {
		name = container.Name
	}
	return hook + " lifecycle hook (" + action + ") for Container " + strconv.Quote(name) +
		" in Pod " + strconv.Quote(formatPod(pod)) + " failed - error: " + err.Error()
}

// formatPod formats a pod as the kubelet does: name_namespace(uid).
func formatPod(pod *v1.Pod) string {
	if pod == nil {
		return "<nil>"
	}
	return pod.Name + "_" + pod.Namespace + "(" + string(pod.UID) + ")"
}

// maxOutput is the most bytes of a command's output that a message contains. A command that prints
// hundreds of megabytes must not use up the agent's memory.
const maxOutput = 64 << 10

var errNoCommands = errors.New("no command runner for exec hooks, Commands is nil")

// exec runs a command in the container of the hook. Its timeout is the time until ctx's
// deadline; in the kubelet it has none. The output of a command that failed is returned for
// the message, and is never in the error.
func (r *handlerRunner) exec(ctx context.Context, containerID string, cmd []string) (output string, err error) {
	var printed []byte
	var timeout time.Duration // 0: no limit
	deadline, limited := ctx.Deadline()
	if limited {
		timeout = time.Until(deadline)
	}
	switch {
	case r.Commands == nil:
		err = errNoCommands
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case limited && timeout <= 0:
		err = context.DeadlineExceeded // ctx's timer has not fired yet
	default:
		printed, err = r.Commands.RunInContainer(ctx, containerID, cmd, timeout)
	}
	if err == nil {
		return "", nil
	}
	return fmt.Sprintf(", message: %q", printed[:min(len(printed), maxOutput)]), err
}

// sleepTolerance is how much of a sleep may be left when it is cancelled but still counts as completed.
// A sleep may be as long as the grace period (KEP-3960), which begins a moment before the sleep. In the
// kubelet such a sleep completes too.
const sleepTolerance = 100 * time.Millisecond

// sleepCancelledError is the error of a sleep that was cancelled. It wraps the cause.
type sleepCancelledError struct{ cause error }

// Error returns the kubelet's text.
func (e *sleepCancelledError) Error() string {
	return "container terminated before sleep hook finished"
}

// Unwrap returns the cause.
func (e *sleepCancelledError) Unwrap() error { return e.cause }

// sleep runs a sleep hook (KEP-3960). It returns at once, without an error, if seconds is 0
// or less or the feature is off. A sleep that ends because its container has exited is no
// failure (k/k#134338).
func (r *handlerRunner) sleep(ctx context.Context, seconds int64) error {
	if !r.sleepEnabled || seconds <= 0 {
		return nil
	}
	start := time.Now()
	select {
	case <-time.After(graceperiod.Duration(seconds)):
		return nil
	case <-ctx.Done():
	}
	err := r.sleepEnded(graceperiod.Duration(seconds)-time.Since(start), context.Cause(ctx))
	if errors.Is(err, CauseContainerExited) {
		return nil
	}
	return err
}

// sleepEnded counts a sleep that cause ended early, and returns its error. The error is [CauseContainerExited]
// if that was the cause, and nil if less than sleepTolerance was left.
func (r *handlerRunner) sleepEnded(left time.Duration, cause error) error {
	switch {
	case left < sleepTolerance:
		return nil
	case errors.Is(cause, CauseContainerExited):
		r.Metrics.SleepEndedByExit()
		return CauseContainerExited
	default:
		r.Metrics.SleepTerminatedEarly()
		return &sleepCancelledError{cause: cause}
	}
}
