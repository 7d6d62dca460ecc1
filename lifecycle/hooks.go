package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/features"
	"github.com/kubegrace/kubegrace/lifecycle/internal/hookhttp"
	"github.com/kubegrace/kubegrace/metrics"
)

// defaultUserAgent is what a kubelet of the Kubernetes version behind this
// package sends with an httpGet hook.
const defaultUserAgent = "kube-lifecycle/1.37"

// handlerKind is the kind of a hook's handler, and a bounded metric label.
type handlerKind string

const (
	kindExec    handlerKind = "exec"
	kindHTTPGet handlerKind = "httpGet"
	kindSleep   handlerKind = "sleep"
	kindOther   handlerKind = "other" // none, or one that cannot be run: tcpSocket
)

// HandlerRunnerOptions says what a hook is run with. The zero value runs
// httpGet and sleep hooks; exec hooks need Commands.
type HandlerRunnerOptions struct {
	// Commands runs the commands of exec hooks. Nil: an exec hook fails, and its
	// error says that there is no command runner.
	Commands CommandRunner
	// HTTP sends the requests of httpGet hooks. Nil is the kubelet's client: no
	// proof of the server's identity is asked for, redirects are followed on the
	// same host only and ten times at most. Unlike the kubelet's it sends a hook's
	// headers to no other port or scheme. A doer of one's own must end a
	// request with the request's context, and keep no connection open after it.
	HTTP HTTPDoer
	// PodIP gives the address of a pod for an httpGet hook that names no host.
	// An error, or "", fails the hook. Nil reads the pod's status: the first of
	// podIPs, else podIP.
	PodIP func(context.Context, *v1.Pod) (string, error)
	// UserAgent is sent by httpGet hooks that do not name their own; "" is that
	// of a kubelet, kube-lifecycle/1.37.
	UserAgent string
	// FailOnHTTPStatus makes a status other than 2xx a failure of the hook,
	// redirects to another host included. False is the kubelet's rule: any answer
	// is a success.
	FailOnHTTPStatus bool
	// Events records that an HTTPS hook was answered in plain HTTP; nil records
	// nothing.
	Events EventRecorder
	// Metrics counts such fallbacks and sleeps that ended early; nil counts
	// nothing.
	Metrics *metrics.Lifecycle
	// Gates is asked for [PodLifecycleSleepAction], once; nil means its default.
	Gates FeatureGate
}

// handlerRunner is the [HandlerRunner] of this package. It has no state beyond
// its options.
type handlerRunner struct {
	HandlerRunnerOptions

	sleeps bool // PodLifecycleSleepAction is on
}

// NewHandlerRunner makes a runner of exec, httpGet and sleep hooks that behaves
// and reports like the kubelet's, with these differences: the request of an
// httpGet hook ends with ctx and goes past any proxy (the kubelet's does not end,
// k/k#103300); a command gets the time left until ctx's deadline as its timeout
// (the kubelet's gets none), and is not run when that is over; a sleep whose ctx
// ended with the cause [ContainerExited] has not failed (k/k#134338), and neither
// has one of which less than 100 ms were left.
//
// A hook ends when ctx does, and its error then wraps the cause of that. The runner
// may be used by any number of goroutines and survives nil arguments but for ctx.
// It does not recover from a panic of Commands, HTTP or PodIP; a [Terminator] does.
func NewHandlerRunner(opts HandlerRunnerOptions) HandlerRunner {
	opts.UserAgent = cmp.Or(opts.UserAgent, defaultUserAgent)
	if opts.HTTP == nil {
		opts.HTTP = hookhttp.NewClient(nil)
	}
	if opts.PodIP == nil {
		opts.PodIP = statusIP
	}
	return &handlerRunner{HandlerRunnerOptions: opts, sleeps: features.Enabled(opts.Gates, PodLifecycleSleepAction)}
}

// Run implements [HandlerRunner]. Of a handler with several fields set the first
// of exec, httpGet and sleep counts. A handler with none of them, tcpSocket
// included, is an error, as in the kubelet.
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

// kindOf tells which field of a handler counts; a nil handler has none.
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

// hookFailed is the kubelet's message for a hook that failed. fmt has no hand in it: its
// depth of calls would make each of a hundred thousand sleeps that are cancelled at once
// grow its stack first.
func hookFailed(hook, action string, pod *v1.Pod, container *v1.Container, err error) string {
	name := ""
	if container != nil {
		name = container.Name
	}
	return hook + " lifecycle hook (" + action + ") for Container " + strconv.Quote(name) +
		" in Pod " + strconv.Quote(podText(pod)) + " failed - error: " + err.Error()
}

// podText is how the kubelet prints a pod: name_namespace(uid).
func podText(pod *v1.Pod) string {
	if pod == nil {
		return "<nil>"
	}
	return pod.Name + "_" + pod.Namespace + "(" + string(pod.UID) + ")"
}

// mostOutput is how much of a command's output is kept, in bytes: printing hundreds of
// megabytes would cost an agent its memory.
const mostOutput = 64 << 10

// exec runs a command in the hook's container, with what is left until ctx's deadline as
// its timeout; the kubelet gives it none. The output is for the message, never in the
// error.
func (r *handlerRunner) exec(ctx context.Context, containerID string, cmd []string) (output string, err error) {
	var printed []byte
	var timeout time.Duration // 0: there is no limit
	deadline, limited := ctx.Deadline()
	if limited {
		timeout = time.Until(deadline)
	}
	switch {
	case r.Commands == nil:
		err = errors.New("no command runner for exec hooks")
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case limited && timeout <= 0:
		err = context.DeadlineExceeded // ctx's own timer is about to say so
	default:
		printed, err = r.Commands.RunInContainer(ctx, containerID, cmd, timeout)
	}
	if err == nil {
		return "", nil
	}
	return fmt.Sprintf(", message: %q", printed[:min(len(printed), mostOutput)]), err
}

// sleepTolerance is how much may lack of a sleep that counts as whole. A sleep may
// be as long as the grace period (KEP-3960), whose deadline was set a moment
// before the sleep began; in the kubelet such a sleep is not cut either.
const sleepTolerance = 100 * time.Millisecond

// sleepCutError is a sleep that was ended before its time; it wraps why. The
// text is the kubelet's.
type sleepCutError struct{ cause error }

func (e *sleepCutError) Error() string { return "container terminated before sleep hook finished" }

func (e *sleepCutError) Unwrap() error { return e.cause }

// sleep lets time pass (KEP-3960). Zero, a negative number and a feature gate that is off
// sleep not at all and are no failure, and neither is a sleep whose container has exited:
// there is no one left to sleep for (k/k#134338).
func (r *handlerRunner) sleep(ctx context.Context, seconds int64) error {
	if !r.sleeps || seconds <= 0 {
		return nil
	}
	began := time.Now()
	select {
	case <-time.After(graceperiod.Duration(seconds)):
		return nil
	case <-ctx.Done():
	}
	err := r.sleepEnded(graceperiod.Duration(seconds)-time.Since(began), context.Cause(ctx))
	if errors.Is(err, ContainerExited) {
		return nil
	}
	return err
}

// sleepEnded gives what a sleep says that was ended when some of it was left, and counts
// it.
func (r *handlerRunner) sleepEnded(left time.Duration, cause error) error {
	switch {
	case left < sleepTolerance:
		return nil
	case errors.Is(cause, ContainerExited):
		r.Metrics.SleepEndedByExit()
		return ContainerExited
	default:
		r.Metrics.SleepTerminatedEarly()
		return &sleepCutError{cause: cause}
	}
}
