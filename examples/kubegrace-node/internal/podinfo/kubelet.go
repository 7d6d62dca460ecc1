package podinfo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

const (
	// kubeletTimeout is how long one request to the kubelet may take.
	kubeletTimeout = 5 * time.Second
	// maxPodListBytes is how much of the kubelet's answer is read at most.
	maxPodListBytes = 32 << 20
)

// KubeletPods asks the kubelet of this machine for its list of pods. url is an https URL, such as
// https://127.0.0.1:10250/pods: over http any process could answer in the kubelet's place, and give false
// priorities. A list of more than 32 MB is an error.
func KubeletPods(ctx context.Context, url string, credentials *rest.Config) (pods []v1.Pod, err error) {
	ctx, cancel := context.WithTimeout(ctx, kubeletTimeout)
	defer cancel()
	transport, err := rest.TransportFor(credentials)
	if err != nil {
		return nil, fmt.Errorf("failed to use the credentials for the kubelet: %w", err)
	}
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
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the kubelet at %s has answered %s", url, response.Status)
	}
	var list v1.PodList
	if err := json.NewDecoder(io.LimitReader(response.Body, maxPodListBytes)).Decode(&list); err != nil {
		return nil, fmt.Errorf("failed to read the pods of the kubelet: %w", err)
	}
	return list.Items, nil
}
