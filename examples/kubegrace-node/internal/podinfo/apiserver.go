package podinfo

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// retellInterval is after how long a pod is told again, which was told before the runtime had it.
const retellInterval = time.Minute

// WatchAPIServer tells info of the pods of a node, as an API server has them, until ctx ends.
// synced is called once all have been told. An API server that is away is tried again. A pod that is deleted may
// run on: Keep forgets it once the runtime has.
func WatchAPIServer(ctx context.Context, client kubernetes.Interface, node string, info *Info, synced func()) error {
	factory := informers.NewSharedInformerFactoryWithOptions(client, retellInterval,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", node).String()
		}),
		informers.WithTransform(func(object any) (any, error) {
			if pod, ok := object.(*v1.Pod); ok {
				pod.ManagedFields = nil
			}
			return object, nil
		}))
	tell := func(object any) {
		if pod, ok := object.(*v1.Pod); ok {
			info.Tell(FromAPIServer, []v1.Pod{*pod})
		}
	}
	handler, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: tell, UpdateFunc: func(_, object any) { tell(object) },
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
