package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle/internal/hookhttp"
)

// HTTPDoer sends an HTTP request; *http.Client implements it. See [HandlerRunnerOptions.HTTP] for the
// requirements.
type HTTPDoer interface {
	Do(req *http.Request) (*http.Response, error)
}

// errNoPodIP is the kubelet's error of an httpGet hook whose pod has no IP address.
var errNoPodIP = errors.New("failed to find networking container")

// get sends the request of an httpGet hook to the hook's host, or to its pod if the hook has none. If the server speaks plain
// HTTP, and the sender has therefore repeated an HTTPS request over HTTP, get counts this fallback and records a warning
// event of the pod, as the kubelet does.
func (r *handlerRunner) get(ctx context.Context, pod *v1.Pod, container *v1.Container, action *v1.HTTPGetAction) error {
	host := action.Host
	if host == "" {
		var err error
		if host, err = r.PodIP(ctx, pod); err != nil {
			return err
		}
	}
	if host == "" {
		return fmt.Errorf("%w: %s", errNoPodIP, formatPod(pod))
	}
	sender := hookhttp.Sender{Doer: r.HTTP, UserAgent: r.UserAgent, FailOnStatus: r.FailOnHTTPStatus}
	plainHost, err := sender.Get(ctx, host, pod, container, action)
	if plainHost == "" { // no fallback from HTTPS to HTTP took place
		return err
	}
	r.Metrics.HTTPFallback()
	if r.Events != nil && pod != nil {
		r.Events.Event(pod, v1.EventTypeWarning, "LifecycleHTTPFallback",
			fmt.Sprintf("request to HTTPS lifecycle hook %s got HTTP response, retry with HTTP succeeded", plainHost))
	}
	return err
}

// statusIP is the default of [HandlerRunnerOptions].PodIP: it returns the first IP address in the pod's
// status; "" if there is none.
func statusIP(_ context.Context, pod *v1.Pod) (string, error) {
	switch {
	case pod == nil:
		return "", nil
	case len(pod.Status.PodIPs) > 0:
		return pod.Status.PodIPs[0].IP, nil
	default:
		return pod.Status.PodIP, nil
	}
}
