package virtualkubelet_test

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// newClientset is client-go's fake clientset with two manners of an API server that
// it lacks: a deletion is graceful, and an update of a status changes nothing else.
func newClientset() *fake.Clientset {
	clients := fake.NewClientset()
	server := apiServer{clients}
	clients.PrependReactor("delete", "pods", server.remove)
	clients.PrependReactor("update", "pods", server.update)
	return clients
}

type apiServer struct{ clients *fake.Clientset }

// pod is the stored pod of an action.
func (s apiServer) pod(action clienttesting.Action, name string) (*v1.Pod, error) {
	obj, err := s.clients.Tracker().Get(action.GetResource(), action.GetNamespace(), name)
	if err != nil {
		return nil, err
	}
	pod, ok := obj.(*v1.Pod)
	if !ok {
		return nil, fmt.Errorf("%s is no pod: %T", name, obj)
	}
	return pod.DeepCopy(), nil
}

// remove deletes as the store of the API server does; the grace is graceperiod's.
func (s apiServer) remove(action clienttesting.Action) (bool, runtime.Object, error) {
	deletion, ok := action.(clienttesting.DeleteActionImpl)
	if !ok {
		return false, nil, nil
	}
	pod, err := s.pod(action, deletion.Name)
	if err != nil {
		return true, nil, err
	}
	graceful, pending, err := graceperiod.BeforeDelete(pod, &deletion.DeleteOptions, time.Now())
	switch {
	case err != nil:
		return true, nil, err
	case pending:
		return true, nil, nil
	case graceful && *pod.DeletionGracePeriodSeconds > 0:
		return true, nil, s.clients.Tracker().Update(action.GetResource(), pod, pod.Namespace)
	default:
		return true, nil, s.clients.Tracker().Delete(action.GetResource(), pod.Namespace, pod.Name)
	}
}

// update writes only the status where that is what is updated.
func (s apiServer) update(action clienttesting.Action) (bool, runtime.Object, error) {
	update, ok := action.(clienttesting.UpdateActionImpl)
	if !ok || action.GetSubresource() != "status" {
		return false, nil, nil
	}
	sent, ok := update.Object.(*v1.Pod)
	if !ok {
		return true, nil, fmt.Errorf("no pod is updated: %T", update.Object)
	}
	pod, err := s.pod(action, sent.Name)
	switch {
	case err != nil:
		return true, nil, err
	case pod.UID != sent.UID:
		return true, nil, fmt.Errorf("the UID of pod %s is %s, not %s", pod.Name, pod.UID, sent.UID)
	}
	pod.Status = sent.Status
	return true, pod, s.clients.Tracker().Update(action.GetResource(), pod, pod.Namespace)
}
