package podinfo

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// WatchAPIServer tells info of the pods of a node, as an API server has them, until ctx ends.
// synced is called once all have been told. An API server that is away is tried again.
func WatchAPIServer(ctx context.Context, client kubernetes.Interface, node string, info *Info, synced func()) {
	tell := func(object any) {
		if pod, ok := object.(*v1.Pod); ok {
			info.Tell([]v1.Pod{*pod})
		}
	}
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewFilteredListWatchFromClient(client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", node).String()
		}),
		ObjectType:   &v1.Pod{},
		ResyncPeriod: time.Minute, // for a pod that was told before the runtime had it
		// What was deleted may run on: Keep forgets it once the runtime has.
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, object any) { tell(object) }},
		Transform: func(object any) (any, error) {
			if pod, ok := object.(*v1.Pod); ok {
				pod.ManagedFields = nil
			}
			return object, nil
		},
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		if cache.WaitForCacheSync(ctx.Done(), controller.HasSynced) {
			synced()
		}
	}()
	controller.RunWithContext(ctx)
	<-done
}
