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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
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

// resyncInterval is how often the informer delivers all pods again. A pod may be delivered before the runtime
// has it. [Info.ForgetAllBut] then forgets it, and it must be delivered again.
const resyncInterval = time.Minute

// WatchAPIServer records in info the pods that an API server has for a node, until ctx ends. It calls synced once,
// when info has all pods of the first list. It keeps trying to reach an API server that does not answer. A pod that is
// deleted may still run, so deletions are ignored: [Info.ForgetAllBut] forgets a pod when the runtime no longer
// has it.
func WatchAPIServer(ctx context.Context, client kubernetes.Interface, node string, info *Info, synced func()) error {
	factory := informers.NewSharedInformerFactoryWithOptions(client, resyncInterval,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", node).String()
		}))
	record := func(object any) {
		if pod, ok := object.(*v1.Pod); ok {
			info.Record(FromAPIServer, []v1.Pod{*pod})
		}
	}
	handler, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: record, UpdateFunc: func(_, object any) { record(object) },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		synced()
	}
	<-ctx.Done()
	factory.Shutdown() // waits for the informer
	return nil
}
