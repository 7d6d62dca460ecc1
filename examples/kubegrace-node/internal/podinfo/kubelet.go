package podinfo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

const (
	// kubeletTimeout is how long one request to the kubelet may take.
	kubeletTimeout = 5 * time.Second
	// maxPodListBytes is how much of the kubelet's answer is read at most, because another process may be
	// answering.
	maxPodListBytes = 32 << 20
)

// KubeletPods returns the pods that a kubelet lists at url. See [OpenKubeletPods] for the arguments.
func KubeletPods(ctx context.Context, url string, credentials *rest.Config) (pods []v1.Pod, err error) {
	ctx, cancel := context.WithTimeout(ctx, kubeletTimeout)
	defer cancel()
	answer, err := OpenKubeletPods(ctx, url, credentials)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, answer.Close()) }()
	var list v1.PodList
	if err := json.NewDecoder(answer).Decode(&list); err != nil {
		return nil, fmt.Errorf("failed to read the pods of the kubelet: %w", err)
	}
	return list.Items, nil
}

// OpenKubeletPods asks the kubelet of this machine for its list of pods and returns the answer as JSON, which
// the caller must close. url is https://127.0.0.1:10250/pods, with credentials, or that of the read-only port,
// http://127.0.0.1:10255/pods, without. Over http any process could be answering, so the answer is an error
// unless the process runs on this machine as root or as the user of this program. That error names the other
// user and the port. The list is cut off after 32 MB.
func OpenKubeletPods(ctx context.Context, url string, credentials *rest.Config) (list io.ReadCloser, err error) {
	transport, err := rest.TransportFor(credentials)
	if err != nil {
		return nil, fmt.Errorf("failed to use the credentials for the kubelet: %w", err)
	}
	var conn net.Conn // the connection over which the answer comes
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) { conn = got.Conn }})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("failed to ask the kubelet for its pods: %w", err)
	}
	if response.TLS == nil {
		err = checkRootAnswers(conn)
	}
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the kubelet at %s has answered %s", url, response.Status)
	}
	if err != nil {
		return nil, errors.Join(err, response.Body.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(response.Body, maxPodListBytes), response.Body}, nil
}
