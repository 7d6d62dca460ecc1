package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/features"
	"github.com/kubegrace/kubegrace/internal/nilcheck"
	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle/internal/hookhttp"
	"github.com/kubegrace/kubegrace/metrics"
)

// defaultUserAgent is the User-Agent of httpGet hooks in the kubelet of Kubernetes 1.37.
const defaultUserAgent = "kube-lifecycle/1.37"

// handlerKind is the kind of a hook's handler, that is, the field that is set in it. It is a metric label.
type handlerKind string

const (
	kindExec    handlerKind = "exec"
	kindHTTPGet handlerKind = "httpGet"
	kindSleep   handlerKind = "sleep"
	kindOther   handlerKind = "other" // nil, empty or tcpSocket, which cannot run
)

// HandlerRunnerOptions configures [NewHandlerRunner]. The zero value runs httpGet and sleep hooks; exec
// hooks need Commands.
type HandlerRunnerOptions struct {
	// Commands runs the commands of exec hooks; nil: exec hooks fail.
	Commands CommandRunner
	// HTTP sends the requests of httpGet hooks. It must end a request and close its connection when the
	// request's context ends.
	//
	// nil means a client like the kubelet's, which does not verify certificates, and follows up to ten
	// redirects on the same host. Unlike the kubelet's, it does not send a hook's headers to another
	// port or scheme.
	HTTP HTTPDoer
	// PodIP returns the pod's IP address, for httpGet hooks without a host. An error or "" fails the
	// hook. nil means the first of the status's podIPs, or else its podIP.
	PodIP func(context.Context, *v1.Pod) (string, error)
	// UserAgent is the User-Agent of httpGet hooks that do not set it; "" means the kubelet's,
	// kube-lifecycle/1.37.
	UserAgent string
	// FailOnHTTPStatus fails a hook whose response is not 2xx. A redirect to another host is not
	// followed and fails too. If false, any response is a success, as in the kubelet.
	FailOnHTTPStatus bool
	// Events records that a server answered an HTTPS hook in plain HTTP; nil: not recorded.
	Events EventRecorder
	// Metrics counts hooks answered in plain HTTP and sleeps that ended early; nil: not counted.
	Metrics *metrics.Lifecycle
	// Gates is read once, for [PodLifecycleSleepAction]; nil: the feature's default.
	Gates featuregate.FeatureGate
}

// handlerRunner is this package's [HandlerRunner].
type handlerRunner struct {
	HandlerRunnerOptions

	sleepEnabled bool // PodLifecycleSleepAction is on
}

// NewHandlerRunner returns a runner of exec, httpGet and sleep hooks. It behaves like the kubelet's and
// returns the same messages, except:
//
//   - The request of an httpGet hook ends with ctx. The kubelet's ignores ctx (k/k#103300).
//   - A command's timeout is the time until ctx's deadline. After the deadline the command does not run.
//     The kubelet sets no timeout.
//   - A sleep succeeds if ctx ends with the cause [CauseContainerExited] (k/k#134338), or less than
//     100 ms before the end of the sleep.
//
// A hook ends when ctx ends. Its error then wraps ctx's cause, except that a command in progress ends with the
// error of Commands. The runner is safe for concurrent use. The pod, container and handler of Run may be nil.
// An option that holds a nil pointer counts as nil. The runner does not recover panics of Commands, HTTP or
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
	if opts.PodIP == nil {
		opts.PodIP = statusIP
	}
	return &handlerRunner{HandlerRunnerOptions: opts, sleepEnabled: features.Enabled(opts.Gates, PodLifecycleSleepAction)}
}

// Run implements [HandlerRunner]. If several fields of handler are set, Run uses the first of exec,
// httpGet and sleep. If none of these is set, as with tcpSocket, it returns an error, as the kubelet does.
// The message is the kubelet's and ends with the output of a failed command, which may be secret; the
// error is that of Commands, without the output.
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
		err = fmt.Errorf("%w: %v", errInvalidHandler, handler)
		return "Cannot run handler: " + err.Error(), err
	}
	if err != nil {
		return hookFailureMessage(hook, action, pod, container, err) + output, err
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

// hookFailureMessage returns the kubelet's message for a failed hook. hook is the kind as the message has it, such as "Exec", and
// action is the hook's command, path or seconds. The function avoids fmt, which needs a larger stack: when many sleeps are
// cancelled at once, all their stacks would grow.
func hookFailureMessage(hook, action string, pod *v1.Pod, container *v1.Container, err error) string {
	name := ""
	if container != nil {
		name = container.Name
	}
	return hook + " lifecycle hook (" + action + ") for Container " + strconv.Quote(name) +
		" in Pod " + strconv.Quote(formatPod(pod)) + " failed - error: " + err.Error()
}

// formatPod returns name_namespace(uid), as the kubelet's format.Pod does.
func formatPod(pod *v1.Pod) string {
	if pod == nil {
		return "<nil>"
	}
	return pod.Name + "_" + pod.Namespace + "(" + string(pod.UID) + ")"
}

// maxOutput limits the bytes of a command's output in a message, so that a command that prints hundreds
// of megabytes does not exhaust the agent's memory.
const maxOutput = 64 << 10

var (
	errNoCommands     = errors.New("no command runner for exec hooks: Commands is nil")
	errInvalidHandler = errors.New("invalid handler") // the kubelet's
)

// exec runs the command of an exec hook. Without Commands, or if ctx leaves no time, it fails and runs nothing. If it
// fails, output has what the command printed, at most maxOutput bytes, as a part of the hook's message.
func (r *handlerRunner) exec(ctx context.Context, containerID string, cmd []string) (output string, err error) {
	var printed []byte
	var timeout time.Duration // 0: no limit
	deadline, hasDeadline := ctx.Deadline()
	if hasDeadline {
		timeout = time.Until(deadline)
	}
	switch {
	case r.Commands == nil:
		err = errNoCommands
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case hasDeadline && timeout <= 0: // the deadline has passed, but nobody has cancelled ctx yet
		err = context.DeadlineExceeded
	default:
		printed, err = r.Commands.RunInContainer(ctx, containerID, cmd, timeout)
	}
	if err == nil {
		return "", nil
	}
	return fmt.Sprintf(", message: %q", printed[:min(len(printed), maxOutput)]), err
}

// sleepTolerance is how much of a sleep may be left when the sleep is cancelled, so that it still counts as completed. A sleep
// may be as long as the grace period (KEP-3960), which begins a moment earlier: without the tolerance such a sleep would always
// be cut. The kubelet lets it complete too.
const sleepTolerance = 100 * time.Millisecond

// sleepCancelledError is the error of a cancelled sleep. It wraps the cause.
type sleepCancelledError struct{ cause error }

// Error returns the kubelet's text.
func (e *sleepCancelledError) Error() string {
	return "container terminated before sleep hook finished"
}

// Unwrap returns the cause.
func (e *sleepCancelledError) Unwrap() error { return e.cause }

// sleep runs a sleep hook (KEP-3960). It succeeds at once if seconds is not positive or the feature is
// off. A cancelled sleep also succeeds if less than sleepTolerance remains, or if its container has exited
// (k/k#134338).
func (r *handlerRunner) sleep(ctx context.Context, seconds int64) error {
	if !r.sleepEnabled || seconds <= 0 {
		return nil
	}
	start, duration := time.Now(), graceperiod.Duration(seconds)
	if times.Sleep(ctx, duration) == nil {
		return nil
	}
	remaining, cause := duration-time.Since(start), context.Cause(ctx)
	switch {
	case remaining < sleepTolerance:
		return nil
	case errors.Is(cause, CauseContainerExited):
		r.Metrics.SleepEndedByExit()
		return nil
	default:
		r.Metrics.SleepTerminatedEarly()
		return &sleepCancelledError{cause: cause}
	}
}
