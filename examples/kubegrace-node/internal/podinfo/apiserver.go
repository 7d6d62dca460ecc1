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

// retellInterval is how often the informer delivers all pods again. A pod may be delivered before the runtime
// has it; [Info.Keep] then forgets it, and it must be told again.
const retellInterval = time.Minute

// WatchAPIServer tells info about the pods of a node, as an API server has them, until ctx ends. It calls
// synced once, when all pods that exist have been told. It keeps trying to reach an API server that does not
// answer. A pod that is deleted may still run, so deletions are ignored: [Info.Keep] forgets a pod when the
// runtime no longer has it.
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
