package apistatus_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/shutdown/apistatus"
)

func TestAPodThatIsGoneIsAcknowledged(t *testing.T) {
	for name, c := range map[string]*cluster{
		"gone": newCluster(),
		"another of its name": newCluster(func() *v1.Pod {
			pod := running("web")
			pod.UID = "another"
			return pod
		}()),
	} {
		t.Run(name, func(t *testing.T) {
			pod := ended(running("web"))
			pod.DeletionTimestamp = &before
			require.NoError(t, c.reporter(t).FlushPods(t.Context(), []*v1.Pod{pod}))
			require.NoError(t, c.reporter(t).MarkReady(t.Context(), []*v1.Pod{pod}, false))
			require.Equal(t, []string{"get", "get"}, c.verbs())
		})
	}
	t.Run("between two requests", func(t *testing.T) {
		c := newCluster(running("web"))
		c.fault = first(1, "patch status", answered(http.StatusNotFound))
		require.NoError(t, c.reporter(t).FlushPods(t.Context(), []*v1.Pod{ended(running("web"))}))
	})
}

func TestAPodWithoutAUIDIsNotGuessed(t *testing.T) {
	pod := ended(running("web"))
	pod.UID = ""
	c := newCluster(running("web"))
	err := c.reporter(t).FlushPods(t.Context(), []*v1.Pod{pod})
	require.EqualError(t, err, "the status of 1 pods was not acknowledged: the pod has no UID")
	require.Equal(t, []string{"default/web"}, names(t, err))
	require.Empty(t, c.verbs())
}

func TestRemoval(t *testing.T) {
	server := running("web")
	pod := ended(server)
	pod.DeletionTimestamp = &before
	t.Run("when the status is accepted", func(t *testing.T) {
		c := newCluster(server)
		require.NoError(t, c.reporter(t).FlushPods(t.Context(), []*v1.Pod{pod}))
		require.Equal(t, []string{"get", "patch status", "delete"}, c.verbs())
		require.Equal(t, metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To(int64(0)), Preconditions: metav1.NewUIDPreconditions("uid-web"),
		}, c.all("delete")[0].Delete)
		_, err := c.Clientset.CoreV1().Pods(server.Namespace).Get(t.Context(), server.Name, metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err))
	})
	t.Run("not before", func(t *testing.T) {
		c := newCluster(server)
		c.fault = first(1, "patch status", answered(http.StatusForbidden))
		require.Error(t, c.reporter(t).FlushPods(t.Context(), []*v1.Pod{pod}))
		require.Equal(t, []string{"get", "patch status"}, c.verbs())
	})
	t.Run("by another", func(t *testing.T) {
		c := newCluster(server)
		c.fault = first(1, "delete", answered(http.StatusNotFound))
		require.NoError(t, c.reporter(t).FlushPods(t.Context(), []*v1.Pod{pod}))
	})
	t.Run("of one that was left as it is", func(t *testing.T) {
		c := newCluster(server)
		left := running("web")
		left.DeletionTimestamp = &before
		require.NoError(t, c.reporter(t).FlushPods(t.Context(), []*v1.Pod{left}))
		require.Equal(t, []string{"get", "delete"}, c.verbs())
	})
	t.Run("refused", func(t *testing.T) {
		c := newCluster(server)
		c.fault = first(1, "delete", answered(http.StatusForbidden))
		require.ErrorContains(t, c.reporter(t).FlushPods(t.Context(), []*v1.Pod{pod}), "failed to delete the pod: ")
	})
}

// annotated gives a pod a UID and annotations.
func annotated(pod *v1.Pod, uid types.UID, annotations map[string]string) *v1.Pod {
	pod.UID, pod.Annotations = uid, annotations
	return pod
}

func TestStaticPods(t *testing.T) {
	const source, hash, mirror = "kubernetes.io/config.source", "kubernetes.io/config.hash", "kubernetes.io/config.mirror"
	for name, test := range map[string]struct {
		server, pod map[string]string
		written     bool
	}{
		"its mirror pod":            {map[string]string{source: "file", mirror: "h1"}, map[string]string{source: "file", hash: "h1"}, true},
		"of a URL":                  {map[string]string{source: "http", mirror: "h1"}, map[string]string{source: "http", hash: "h1"}, true},
		"without a hash":            {map[string]string{mirror: "h1"}, map[string]string{source: "file"}, true},
		"the mirror of another one": {map[string]string{mirror: "h2"}, map[string]string{source: "file", hash: "h1"}, false},
		"no mirror pod":             {nil, map[string]string{source: "file", hash: "h1"}, false},
		"no static pod":             {map[string]string{mirror: "h1"}, map[string]string{source: "api", hash: "h1"}, false},
		"nothing is known":          {map[string]string{mirror: "h1"}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := annotated(running("etcd"), "mirror", test.server)
			pod := annotated(ended(running("etcd")), "static", test.pod)
			pod.DeletionTimestamp = &before
			c := flush(t, server, pod)
			if !test.written {
				require.Equal(t, []string{"get"}, c.verbs())
				return
			}
			require.Equal(t, []string{"get", "patch status"}, c.verbs(), "a mirror pod is not deleted")
			require.Contains(t, c.all("patch status")[0].Body, `"uid":"mirror"`)
			require.Equal(t, v1.PodFailed, c.pod(t, "etcd").Status.Phase)
		})
	}
}

func TestWhatHasNoPatch(t *testing.T) {
	_, err := apistatus.TwoWayPatch(make(chan int), 1)
	require.ErrorContains(t, err, "unsupported type")
}
