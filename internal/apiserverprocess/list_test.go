package apiserverprocess_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Pods are listed with field and label selectors, from etcd and from the watch cache. A selector with an unknown field
// or an invalid syntax is an error, not an empty list. createRunning makes pods of node-1 in the namespace default, unless
// it is told otherwise.
func TestListSelectors(t *testing.T) {
	c := startCluster(t)
	c.createRunning(t, "web")
	c.createRunning(t, "elsewhere", func(pod *v1.Pod) { pod.Spec.NodeName, pod.Labels = "node-2", map[string]string{"app": "shop"} })
	_, err := c.CoreV1().Pods("kube-system").Create(t.Context(), &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: v1.PodSpec{NodeName: "node-1"},
	}, metav1.CreateOptions{})
	require.NoError(t, err, "the namespace does not have to exist")
	for name, test := range map[string]struct {
		namespace string
		options   metav1.ListOptions
		want      []string // sorted by namespace and name
	}{
		"all namespaces":    {namespace: metav1.NamespaceAll, options: metav1.ListOptions{}, want: []string{"elsewhere", "web", "other"}},
		"from the cache":    {namespace: metav1.NamespaceAll, options: metav1.ListOptions{ResourceVersion: "0", FieldSelector: "spec.nodeName=node-2"}, want: []string{"elsewhere"}},
		"one namespace":     {namespace: "default", options: metav1.ListOptions{}, want: []string{"elsewhere", "web"}},
		"by node":           {namespace: metav1.NamespaceAll, options: metav1.ListOptions{FieldSelector: "spec.nodeName=node-1"}, want: []string{"web", "other"}},
		"by name and phase": {namespace: metav1.NamespaceAll, options: metav1.ListOptions{FieldSelector: "metadata.name=web,status.phase!=Failed"}, want: []string{"web"}},
		"by hostNetwork":    {namespace: metav1.NamespaceAll, options: metav1.ListOptions{FieldSelector: "spec.hostNetwork=true"}, want: []string{}},
		"by label":          {namespace: metav1.NamespaceAll, options: metav1.ListOptions{LabelSelector: "app in (shop)"}, want: []string{"elsewhere"}},
		"none":              {namespace: "default", options: metav1.ListOptions{FieldSelector: "metadata.namespace=kube-system"}, want: []string{}},
		"first page":        {namespace: metav1.NamespaceAll, options: metav1.ListOptions{Limit: 2}, want: []string{"elsewhere", "web"}},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := c.CoreV1().Pods(test.namespace).List(t.Context(), test.options)
			require.NoError(t, err)
			require.NotEmpty(t, list.ResourceVersion)
			names := make([]string, len(list.Items))
			for i := range list.Items {
				names[i] = list.Items[i].Name
			}
			require.Equal(t, test.want, names)
		})
	}
	for _, options := range []metav1.ListOptions{
		{FieldSelector: "spec.nodename=node-1"}, {FieldSelector: "spec.nodeName"}, {LabelSelector: "app in"},
	} {
		_, err := c.pods().List(t.Context(), options)
		require.True(t, apierrors.IsBadRequest(err), "%v", err)
	}
}

// A watch selects running pods. The pod web begins to run, is then deleted, and then ends, so that the watch no longer
// selects it. The watch has one event for each of the three changes, and none for the other pod.
func TestWatchWithAFieldSelector(t *testing.T) {
	c := startCluster(t)
	c.createRunning(t, "api")
	list, err := c.pods().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	watcher, err := c.pods().Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion, FieldSelector: "status.phase=Running"})
	require.NoError(t, err)
	t.Cleanup(watcher.Stop)
	requireNextEvent := func(want watch.EventType) {
		t.Helper()
		event := <-watcher.ResultChan()
		pod, ok := event.Object.(*v1.Pod)
		require.True(t, ok, "%v", event)
		require.Equal(t, want, event.Type)
		require.Equal(t, "web", pod.Name)
	}
	c.createRunning(t, "web")
	requireNextEvent(watch.Added)
	require.NoError(t, c.pods().Delete(t.Context(), "web", metav1.DeleteOptions{}))
	requireNextEvent(watch.Modified)
	_, err = c.patch(t.Context(), merge, `{"status":{"phase":"Failed"}}`, "status")
	require.NoError(t, err)
	requireNextEvent(watch.Deleted)
}
