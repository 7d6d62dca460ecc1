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
	// kubeletTimeout bounds one request to the kubelet.
	kubeletTimeout = 5 * time.Second
	// maxPodListBytes bounds the kubelet's answer.
	maxPodListBytes = 32 << 20
)

// KubeletPods returns the pods that [OpenKubeletPods] opens.
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

// OpenKubeletPods asks a kubelet for its list of pods, at https://127.0.0.1:10250/pods with credentials, or at
// that of its read-only port, http://127.0.0.1:10255/pods, with none. Over http an answer is an error unless a
// process of root, or of the user of this program, has given it on this machine. The text of that error has
// the other user and the port. The list ends after 32 MB.
func OpenKubeletPods(ctx context.Context, url string, credentials *rest.Config) (list io.ReadCloser, err error) {
	transport, err := rest.TransportFor(credentials)
	if err != nil {
		return nil, fmt.Errorf("failed to use the credentials for the kubelet: %w", err)
	}
	var conn net.Conn // the one over which the answer comes
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
