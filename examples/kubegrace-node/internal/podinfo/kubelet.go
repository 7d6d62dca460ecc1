package podinfo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
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
	noRedirects := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // they would get the credentials
	client := &http.Client{Transport: transport, CheckRedirect: noRedirects}
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

// resyncInterval is how often the informer delivers all pods again. A pod may be delivered before the runtime
// has it. [Info.ForgetAllBut] then forgets it, and it must be delivered again.
const resyncInterval = time.Minute

// WatchAPIServer records in info the pods that an API server has for a node, until ctx ends or a request fails. It calls
// synced once, when info has all pods of the first list. The error is that of the request, or nil if ctx has ended. Deletions
// are ignored, because a deleted pod may still run: [Info.ForgetAllBut] forgets a pod when the runtime no longer has it.
func WatchAPIServer(ctx context.Context, client kubernetes.Interface, node string, info *Info, synced func()) error {
	watchCtx, end := context.WithCancelCause(ctx) // ends with the error of a request that fails
	defer end(nil)
	selector := fields.OneTermEqualSelector("spec.nodeName", node).String()
	pods := client.CoreV1().Pods(metav1.NamespaceAll)
	requests := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			opts.FieldSelector = selector
			return pods.List(ctx, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			opts.FieldSelector = selector
			events, err := pods.Watch(ctx, opts)
			if utilnet.IsConnectionRefused(err) {
				end(err) // the informer repeats such a watch itself, and its error handler does not get the error
			}
			return events, err
		},
	}
	informer := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(requests, client), &v1.Pod{}, resyncInterval, nil)
	record := func(object any) {
		if pod, ok := object.(*v1.Pod); ok {
			info.Record(FromAPIServer, []v1.Pod{*pod})
		}
	}
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: record, UpdateFunc: func(_, object any) { record(object) },
	})
	if err != nil {
		return err
	}
	failed := func(_ context.Context, _ *cache.Reflector, err error) { end(err) }
	if err := informer.SetWatchErrorHandlerWithContext(failed); err != nil {
		return err
	}
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(watchCtx) })
	if cache.WaitForCacheSync(watchCtx.Done(), handler.HasSynced) {
		synced()
	}
	running.Wait()
	// info may have forgotten some of the pods, and the API server delivers them again only in the next watch.
	for _, object := range informer.GetStore().List() {
		record(object)
	}
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("failed to watch the node's pods: %w", context.Cause(watchCtx))
}
