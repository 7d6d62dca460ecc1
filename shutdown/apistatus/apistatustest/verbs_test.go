package apistatustest_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

func TestGetSaysWhatItIs(t *testing.T) {
	server := start(t, pod("web"))
	code, body := ask(t, server, http.MethodGet, "/api/v1/namespaces/default/pods/web", "", "")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, `"kind":"Pod","apiVersion":"v1"`)

	_, err := clientFor(t, server).Pods("default").Get(t.Context(), "api", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	require.ErrorContains(t, err, `pods "api" not found`)
}

func TestList(t *testing.T) {
	elsewhere, other := pod("elsewhere"), pod("other")
	elsewhere.Spec.NodeName, elsewhere.Labels = "node-2", map[string]string{"app": "shop"}
	other.Namespace = "kube-system"
	server := start(t, node("node-1"), pod("web"), elsewhere, other)
	client := clientFor(t, server)
	for name, test := range map[string]struct {
		namespace string
		options   metav1.ListOptions
		want      []string
	}{
		"all namespaces": {"", metav1.ListOptions{}, []string{"elsewhere", "web", "other"}},
		"one namespace":  {"default", metav1.ListOptions{}, []string{"elsewhere", "web"}},
		"of a node":      {"", metav1.ListOptions{FieldSelector: "spec.nodeName=node-1"}, []string{"web", "other"}},
		"of a name":      {"", metav1.ListOptions{FieldSelector: "metadata.name=web,status.phase!=Failed"}, []string{"web"}},
		"of a label":     {"", metav1.ListOptions{LabelSelector: "app in (shop)"}, []string{"elsewhere"}},
		"none":           {"default", metav1.ListOptions{FieldSelector: "metadata.namespace=kube-system"}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := client.Pods(test.namespace).List(t.Context(), test.options)
			require.NoError(t, err)
			require.NotEmpty(t, list.ResourceVersion)
			names := make([]string, len(list.Items))
			for i := range list.Items {
				names[i] = list.Items[i].Name
			}
			require.Equal(t, test.want, names)
		})
	}
	nodes, err := client.Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, nodes.Items, 1)
}

func TestListRefuses(t *testing.T) {
	client := clientFor(t, start(t))
	for _, options := range []metav1.ListOptions{
		{FieldSelector: "spec.hostNetwork=true"}, {FieldSelector: "spec.nodeName"}, {LabelSelector: "app in"},
	} {
		_, err := client.Pods("").List(t.Context(), options)
		require.True(t, apierrors.IsBadRequest(err), "%v", err)
	}
	_, err := client.Pods("").Watch(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsMethodNotSupported(err), "%v", err)
}

func TestCreate(t *testing.T) {
	server := start(t)
	pods := clientFor(t, server).Pods("default")
	given := pod("web")
	given.UID, given.Namespace, given.Generation = "mine", "", 7
	got, err := pods.Create(t.Context(), given, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, server.Requests()[0].Status)
	require.Equal(t, "default", got.Namespace, "that of the path")
	require.NotEqual(t, given.UID, got.UID)
	require.EqualValues(t, 1, got.Generation)
	require.Equal(t, v1.PodStatus{Phase: v1.PodPending}, got.Status, "the status is not the creator's")
	require.Equal(t, got, stored(t, server, "web"))

	_, err = pods.Create(t.Context(), given, metav1.CreateOptions{})
	require.True(t, apierrors.IsAlreadyExists(err), "%v", err)

	registered := node("node-1")
	registered.Status.Phase = v1.NodeRunning
	n, err := clientFor(t, server).Nodes().Create(t.Context(), registered, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, v1.NodeRunning, n.Status.Phase, "a node registers with its status")
}

func TestCreateRefuses(t *testing.T) {
	server := start(t)
	pods := "/api/v1/namespaces/default/pods"
	for name, test := range map[string]struct {
		path, body string
		code       int
	}{
		"no name":         {pods, `{}`, http.StatusUnprocessableEntity},
		"other namespace": {pods, `{"metadata":{"name":"web","namespace":"kube-system"}}`, http.StatusBadRequest},
		"other kind":      {pods, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"web"}}`, http.StatusBadRequest},
		"no JSON":         {pods, `{`, http.StatusBadRequest},
		"no namespace":    {"/api/v1/pods", `{}`, http.StatusMethodNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			code, body := ask(t, server, http.MethodPost, test.path, runtime.ContentTypeJSON, test.body)
			require.Equal(t, test.code, code, body)
			require.Contains(t, body, `"kind":"Status"`)
		})
	}
	require.Empty(t, server.Pods())
}

func TestUpdate(t *testing.T) {
	server := start(t, pod("web"))
	pods := clientFor(t, server).Pods("default")
	before := stored(t, server, "web")

	changed := before.DeepCopy()
	changed.Labels, changed.Status.Phase = map[string]string{"app": "shop"}, v1.PodFailed
	got, err := pods.Update(t.Context(), changed, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, changed.Labels, got.Labels)
	require.Equal(t, v1.PodRunning, got.Status.Phase, "only /status changes it")

	_, err = pods.UpdateStatus(t.Context(), changed, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), "of an old version: %v", err)
	require.ErrorContains(t, err, "the object has been modified; please apply your changes to the latest version and try again")
	changed.ResourceVersion, changed.Spec.NodeName = got.ResourceVersion, "node-2"
	got, err = pods.UpdateStatus(t.Context(), changed, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, v1.PodFailed, got.Status.Phase)
	require.Equal(t, "node-1", got.Spec.NodeName)
	require.Equal(t, got, stored(t, server, "web"))

	changed.ResourceVersion = ""
	_, err = pods.Update(t.Context(), changed, metav1.UpdateOptions{})
	require.NoError(t, err, "without a resourceVersion it replaces what is there")
	require.EqualValues(t, 2, stored(t, server, "web").Generation)
}

func TestUpdateRefuses(t *testing.T) {
	server := start(t, pod("web"))
	pods := clientFor(t, server).Pods("default")
	recreated := pod("web")
	recreated.UID = "another"
	_, err := pods.Update(t.Context(), recreated, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.ErrorContains(t, err, "Precondition failed: UID in precondition: another, UID in object meta: uid-of-web")

	_, err = pods.Update(t.Context(), pod("api"), metav1.UpdateOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	code, body := ask(t, server, http.MethodPut, "/api/v1/namespaces/default/pods/web", "", `{"metadata":{"name":"api"}}`)
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, body, "the name of the object (api) does not match the name on the URL (web)")
	code, _ = ask(t, server, http.MethodPut, "/api/v1/namespaces/default/pods/web", "", `[`)
	require.Equal(t, http.StatusBadRequest, code)
}

func TestLeases(t *testing.T) {
	client, err := kubernetes.NewForConfig(configFor(start(t)))
	require.NoError(t, err)
	leases := client.CoordinationV1().Leases("kube-node-lease")
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	lease, err = leases.Create(t.Context(), lease, metav1.CreateOptions{})
	require.NoError(t, err)
	lease.Spec.HolderIdentity = ptr.To("node-1")
	_, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{})
	require.NoError(t, err)
	lease, err = leases.Get(t.Context(), "node-1", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, ptr.To("node-1"), lease.Spec.HolderIdentity)
}

func TestPathsAndMethods(t *testing.T) {
	server := start(t, pod("web"))
	for _, path := range []string{"/", "/version", "/api/v1/secrets", "/api/v1/namespaces/default/pods/web/eviction"} {
		code, body := ask(t, server, http.MethodGet, path, "", "")
		require.Equal(t, http.StatusNotFound, code, path)
		require.Contains(t, body, `"kind":"Status"`)
	}
	code, body := ask(t, server, http.MethodDelete, "/api/v1/namespaces/default/pods", "", "")
	require.Equal(t, http.StatusMethodNotAllowed, code)
	require.Contains(t, body, `DELETE is not supported on resources of kind \"pods\"`)
}

func TestContentTypes(t *testing.T) {
	server := start(t, pod("web"))
	config := configFor(server)
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = client.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err, "JSON is second best")

	client, err = kubernetes.NewForConfig(&rest.Config{Host: server.URL(), QPS: -1}) // protobuf
	require.NoError(t, err)
	created, err := client.CoreV1().Pods("default").Create(t.Context(), pod("api"), metav1.CreateOptions{})
	require.NoError(t, err)
	requests := server.Requests()
	require.Equal(t, runtime.ContentTypeProtobuf, requests[len(requests)-1].ContentType)
	created.Labels = map[string]string{"a": "b"}
	_, err = client.CoreV1().Pods("default").Update(t.Context(), created, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, created.Labels, stored(t, server, "api").Labels)
	wrong := metav1.NewDeleteOptions(0)
	wrong.Preconditions = metav1.NewUIDPreconditions("another")
	err = client.CoreV1().Pods("default").Delete(t.Context(), "api", *wrong)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.NoError(t, client.CoreV1().Pods("default").Delete(t.Context(), "api", *metav1.NewDeleteOptions(0)))
	require.Len(t, server.Pods(), 1)
	code, _ := ask(t, server, http.MethodPut, "/api/v1/namespaces/default/pods/web", ";", `{}`)
	require.Equal(t, http.StatusUnsupportedMediaType, code)
}
