package lifecycle

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/features"
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
	// same host only and ten times at most. A doer of one's own must end a
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
	exec  execHook
	http  httpHook
	sleep sleepHook
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
	return &handlerRunner{
		exec:  execHook{commands: opts.Commands},
		http:  newHTTPHook(opts),
		sleep: sleepHook{on: features.Enabled(opts.Gates, PodLifecycleSleepAction), metrics: opts.Metrics},
	}
}

// Run implements [HandlerRunner]. Of a handler with several fields set the first
// of exec, httpGet and sleep counts. A handler with none of them, tcpSocket
// included, is an error, as in the kubelet.
func (r *handlerRunner) Run(ctx context.Context, containerID string, pod *v1.Pod, container *v1.Container, handler *v1.LifecycleHandler) (string, error) {
	var err error
	switch kindOf(handler) {
	case kindExec:
		return r.exec.run(ctx, containerID, pod, container, handler)
	case kindHTTPGet:
		err = r.http.run(ctx, pod, container, handler.HTTPGet)
	case kindSleep:
		err = r.sleep.run(ctx, nil, handler.Sleep.Seconds)
	case kindOther:
		return invalidHandler(handler)
	}
	if err != nil {
		return hookFailed(handler, pod, container, err), err
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

// invalidHandler has the kubelet's text for a handler that it cannot run.
func invalidHandler(handler *v1.LifecycleHandler) (string, error) {
	err := fmt.Errorf("invalid handler: %v", handler)
	return fmt.Sprintf("Cannot run handler: %v", err), err
}

// describe names a handler, and what it was to do, as the kubelet's messages do.
func describe(handler *v1.LifecycleHandler) (hook, action string) {
	switch kindOf(handler) {
	case kindExec:
		return "Exec", fmt.Sprint(handler.Exec.Command)
	case kindHTTPGet:
		return "HTTP", handler.HTTPGet.Path
	case kindSleep:
		return "Sleep", strconv.FormatInt(handler.Sleep.Seconds, 10)
	default:
		return "", ""
	}
}

// hookFailed is the kubelet's message for a hook that failed. The usual names need
// no escaping, and then fmt has no hand in it: its depth of calls would make each of
// a hundred thousand sleeps that are cancelled at once grow its stack first.
func hookFailed(handler *v1.LifecycleHandler, pod *v1.Pod, container *v1.Container, err error) string {
	hook, action := describe(handler)
	name := containerName(container)
	if pod == nil || !plain(name) || !plain(pod.Name) || !plain(pod.Namespace) || !plain(string(pod.UID)) {
		return fmt.Sprintf("%s lifecycle hook (%s) for Container %q in Pod %q failed - error: %v", hook, action, name, podText(pod), err)
	}
	reason := err.Error()
	var b strings.Builder
	b.Grow(len(hook) + len(action) + len(name) + len(pod.Name) + len(pod.Namespace) + len(pod.UID) + len(reason) + 64)
	b.WriteString(hook)
	b.WriteString(" lifecycle hook (")
	b.WriteString(action)
	b.WriteString(") for Container \"")
	b.WriteString(name)
	b.WriteString("\" in Pod \"")
	b.WriteString(pod.Name)
	b.WriteString("_")
	b.WriteString(pod.Namespace)
	b.WriteString("(")
	b.WriteString(string(pod.UID))
	b.WriteString(")\" failed - error: ")
	b.WriteString(reason)
	return b.String()
}

// containerName is "" for a nil container.
func containerName(container *v1.Container) string {
	if container == nil {
		return ""
	}
	return container.Name
}

// podText is how the kubelet prints a pod: name_namespace(uid).
func podText(pod *v1.Pod) string {
	if pod == nil {
		return "<nil>"
	}
	return pod.Name + "_" + pod.Namespace + "(" + string(pod.UID) + ")"
}

// plain tells whether %q would print s as it is, between quotes.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
