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

// KubeletPods asks the kubelet of this machine for its list of pods. url is https://127.0.0.1:10250/pods, with
// credentials, or that of the read-only port, http://127.0.0.1:10255/pods, without. Over http any process could
// be answering, so the answer is an error unless the process runs on this machine as root or as the user of
// this program. That error names the other user and the port. The list is cut off after 32 MB.
func KubeletPods(ctx context.Context, url string, credentials *rest.Config) (pods []v1.Pod, err error) {
	ctx, cancel := context.WithTimeout(ctx, kubeletTimeout)
	defer cancel()
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
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.TLS == nil {
		if err := checkRootAnswers(conn); err != nil {
			return nil, err
		}
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the kubelet at %s has answered %s", url, response.Status)
	}
	var list v1.PodList
	if err := json.NewDecoder(io.LimitReader(response.Body, maxPodListBytes)).Decode(&list); err != nil {
		return nil, fmt.Errorf("failed to read the pods of the kubelet: %w", err)
	}
	return list.Items, nil
}
