//go:build go1.25

package apistatus_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/shutdown/apistatus"
)

// anotherUID is the API server's answer to a patch of a pod that was replaced by one with another UID.
var anotherUID = apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "web", field.ErrorList{
	field.Invalid(field.NewPath("metadata", "uid"), "uid-web", "field is immutable"),
})

// The pod was removed from the API server, or replaced by another one with its name, before the patch or before the delete.
// The server answers with an error, but FlushPod returns nil. After a conflict, which may have another cause, FlushPod first
// gets the pod to find out.
func TestFlushPodSucceedsForAPodThatIsGone(t *testing.T) {
	another := running("web")
	another.UID = "another"
	for name, test := range map[string]struct {
		server *v1.Pod  // the API server's pod; nil: none
		verb   string   // the request that fails
		err    error    // with which it fails
		want   []string // all requests
	}{
		"gone":                       {verb: "patch status", err: statusError(http.StatusNotFound), want: []string{"patch status"}},
		"replaced":                   {server: another, verb: "patch status", err: anotherUID, want: []string{"patch status"}},
		"replaced, a conflict":       {server: another, verb: "patch status", err: statusError(http.StatusConflict), want: []string{"patch status", "get"}},
		"gone, a conflict":           {verb: "patch status", err: statusError(http.StatusConflict), want: []string{"patch status", "get"}},
		"gone before the delete":     {server: running("web"), verb: "delete", err: statusError(http.StatusNotFound), want: []string{"patch status", "delete"}},
		"replaced before the delete": {server: another, verb: "delete", err: statusError(http.StatusConflict), want: []string{"patch status", "delete", "get"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			if test.server != nil {
				c = newCluster(test.server)
			}
			c.fault = failFirst(1, test.verb, test.err)
			pod := deleted(ended(running("web")))
			c.ignorePatches = test.server == another // a real server would refuse them; the fake clientset ignores the UID
			require.NoError(t, c.reporter(t).FlushPod(t.Context(), pod))
			require.Equal(t, test.want, c.verbs())
		})
	}
}

// MarkNotReady and RestoreReadiness return nil if the pod is gone, or if it is a static pod whose mirror pod is gone.
func TestReadinessSucceedsForAPodThatIsGone(t *testing.T) {
	c := newCluster()
	require.NoError(t, c.reporter(t).MarkNotReady(t.Context(), running("web")))
	require.NoError(t, c.reporter(t).RestoreReadiness(t.Context(), running("web")))
	require.Equal(t, []string{"patch status", "get"}, c.verbs(), "MarkNotReady patches the pod, RestoreReadiness reads it first")
	static := withAnnotations(running("etcd"), "static", map[string]string{"kubernetes.io/config.source": "file"})
	require.NoError(t, c.reporter(t).MarkNotReady(t.Context(), static))
	require.NoError(t, c.reporter(t).RestoreReadiness(t.Context(), static))
}

// A patch of FlushPod fails. The error wraps the API server's answer, by which the caller decides whether and when it repeats FlushPod.
// FlushPod itself neither repeats the patch nor deletes the pod.
func TestErrorsWrapTheServersAnswer(t *testing.T) {
	wrapsDelay := func(err error) bool {
		seconds, _ := apierrors.SuggestsClientDelay(err)
		return apierrors.IsTooManyRequests(err) && seconds == 7
	}
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "web", field.ErrorList{field.Forbidden(field.NewPath("status"), "no")})
	bare := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid}}
	const isUnexpected = true // the answer is no Status object
	fromProxy := apierrors.NewGenericServerResponse(http.StatusNotFound, http.MethodPatch, schema.GroupResource{}, "", "default backend", 0, isUnexpected)
	for name, test := range map[string]struct {
		err   error            // of the patch
		wraps func(error) bool // reports whether FlushPod's error wraps err
		want  []string         // the requests
	}{
		"a conflict":          {err: statusError(http.StatusConflict), wraps: apierrors.IsConflict, want: []string{"patch status", "get"}}, // the get finds out whether another pod has taken the name
		"forbidden":           {err: statusError(http.StatusForbidden), wraps: apierrors.IsForbidden, want: []string{"patch status"}},
		"unauthorized":        {err: statusError(http.StatusUnauthorized), wraps: apierrors.IsUnauthorized, want: []string{"patch status"}},
		"too many requests":   {err: apierrors.NewTooManyRequests("slow down", 7), wraps: wrapsDelay, want: []string{"patch status"}},
		"an internal error":   {err: statusError(http.StatusInternalServerError), wraps: apierrors.IsInternalError, want: []string{"patch status"}},
		"invalid":             {err: invalid, wraps: apierrors.IsInvalid, want: []string{"patch status"}},
		"invalid, no details": {err: bare, wraps: apierrors.IsInvalid, want: []string{"patch status"}},
		"a proxy's 404":       {err: fromProxy, wraps: apierrors.IsNotFound, want: []string{"patch status"}},
		"a network error":     {err: errRefused, wraps: func(err error) bool { return errors.Is(err, errRefused) }, want: []string{"patch status"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(running("web"))
			c.fault = failFirst(1, "patch status", test.err)
			err := c.reporter(t).FlushPod(t.Context(), deleted(ended(running("web"))))
			require.ErrorContains(t, err, "failed to patch the status of pod default/web: ")
			require.True(t, test.wraps(err), "%v", err)
			require.Equal(t, test.want, c.verbs(), "no second patch and no delete")
			require.NoError(t, c.reporter(t).FlushPod(t.Context(), ended(running("web"))), "another attempt")
		})
	}
}

// No request is made for a pod without a UID, because the request could hit a newer pod with the same name. Nor is one
// made for nil, or for a pod without a namespace or name, which has no URL.
func TestAPodWithoutIdentityIsRejected(t *testing.T) {
	pod := ended(running("web"))
	pod.UID = ""
	c := newCluster(running("web"))
	r := c.reporter(t)
	require.EqualError(t, r.FlushPod(t.Context(), pod), "pod default/web: the pod has no UID")
	pod.Status = running("web").Status
	require.EqualError(t, r.MarkNotReady(t.Context(), pod), "pod default/web: the pod has no UID")
	require.EqualError(t, r.RestoreReadiness(t.Context(), pod), "pod default/web: the pod has no UID")
	for name, namespace := range map[string]string{"": "default", "web": ""} {
		unnamed := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: "1"}}
		require.ErrorContains(t, r.FlushPod(t.Context(), unnamed), "the pod needs a namespace and a name")
	}
	require.EqualError(t, r.FlushPod(t.Context(), nil), "a pod is required")
	require.EqualError(t, r.MarkNotReady(t.Context(), nil), "a pod is required")
	require.EqualError(t, r.RestoreReadiness(t.Context(), nil), "a pod is required")
	require.Empty(t, c.verbs())
}

// FlushPod deletes a pod that has a deletion timestamp, as a kubelet does, but only after the API server has accepted its
// final status, if there is one to write. If the delete fails, FlushPod returns the error. A conflict may mean that
// another pod has taken the name, which is no error: FlushPod reads the pod, finds the same UID, and returns the conflict.
func TestFlushPodRemovesADeletedPod(t *testing.T) {
	server, pod := running("web"), deleted(ended(running("web")))
	t.Run("after the status is accepted", func(t *testing.T) {
		c := newCluster(server)
		require.NoError(t, c.reporter(t).FlushPod(t.Context(), pod))
		require.Equal(t, []string{"patch status", "delete"}, c.verbs())
		require.Equal(t, metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To(int64(0)), Preconditions: metav1.NewUIDPreconditions("uid-web"),
		}, c.callsOf("delete")[0].Delete)
		_, err := c.Clientset.CoreV1().Pods(server.Namespace).Get(t.Context(), server.Name, metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err))
	})
	t.Run("without a status to write", func(t *testing.T) {
		left := deleted(running("web"))
		left.Status = v1.PodStatus{Phase: v1.PodPending} // no container has ended and no condition is set: nothing to write
		require.Equal(t, []string{"delete"}, flush(t, server, left).verbs())
	})
	t.Run("refused", func(t *testing.T) {
		c := newCluster(server)
		c.fault = failFirst(1, "delete", statusError(http.StatusForbidden))
		err := c.reporter(t).FlushPod(t.Context(), pod)
		require.ErrorContains(t, err, "failed to delete pod default/web: ")
		require.True(t, apierrors.IsForbidden(err))
		require.NoError(t, c.reporter(t).FlushPod(t.Context(), pod), "another attempt")
	})
	t.Run("conflict", func(t *testing.T) {
		c := newCluster(server)
		c.fault = failFirst(1, "delete", statusError(http.StatusConflict))
		require.True(t, apierrors.IsConflict(c.reporter(t).FlushPod(t.Context(), pod)), "the pod still exists")
		require.Equal(t, []string{"patch status", "delete", "get"}, c.verbs())
	})
}

// The API server does not answer. A request ends after RequestTimeout (2 s by default), or with the context if that is
// earlier, and the error says which.
func TestARequestEndsWithItsTimeout(t *testing.T) {
	for name, test := range map[string]struct {
		requestTimeout time.Duration // 0: the default
		ofContext      time.Duration // the timeout of the context
		want           time.Duration // how long the call takes
		text           string        // of the error
	}{
		"default": {ofContext: time.Hour, want: 2 * time.Second, text: "no answer within 2s: "},
		"option":  {requestTimeout: 5 * time.Second, ofContext: time.Hour, want: 5 * time.Second, text: "no answer within 5s: "},
		"context": {ofContext: time.Second, want: time.Second, text: "failed to patch the status of pod default/web: Get "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(running("web"))
				c.fault = hang
				r := c.reporter(t, func(opts *apistatus.Options) { opts.RequestTimeout = test.requestTimeout })
				start := time.Now()
				ctx, cancel := withTimeout(t, test.ofContext)
				defer cancel()
				require.ErrorContains(t, r.FlushPod(ctx, ended(running("web"))), test.text)
				require.Equal(t, test.want, time.Since(start))
			})
		})
	}
}

// FlushPod makes two requests, a patch and a delete, of 1.9 s each. Both succeed, because each has 2 s of its own.
func TestEachRequestHasItsOwnTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(running("web"))
		c.fault = delayAll(1900 * time.Millisecond)
		require.NoError(t, c.reporter(t).FlushPod(t.Context(), deleted(ended(running("web")))))
	})
}

// withAnnotations gives a pod a UID and annotations.
func withAnnotations(pod *v1.Pod, uid types.UID, annotations map[string]string) *v1.Pod {
	pod.UID, pod.Annotations = uid, annotations
	return pod
}

// A static pod is represented on the API server by its mirror pod, which has another UID. FlushPod recognizes the mirror
// pod by its annotations, and writes to no other pod. It does not write the generation, which is that of the static pod's
// manifest.
func TestStaticPodStatusGoesToTheMirrorPod(t *testing.T) {
	const source, hash, mirror = "kubernetes.io/config.source", "kubernetes.io/config.hash", "kubernetes.io/config.mirror"
	for name, test := range map[string]struct {
		server, pod map[string]string // the annotations of the API server's pod and of the node's pod
		written     bool
	}{
		"its mirror pod":        {server: map[string]string{source: "file", mirror: "h1"}, pod: map[string]string{source: "file", hash: "h1"}, written: true},
		"of a URL":              {server: map[string]string{source: "http", mirror: "h1"}, pod: map[string]string{source: "http", hash: "h1"}, written: true},
		"without a hash":        {server: map[string]string{mirror: "h1"}, pod: map[string]string{source: "file"}, written: true},
		"mirror of another pod": {server: map[string]string{mirror: "h2"}, pod: map[string]string{source: "file", hash: "h1"}},
		"no mirror pod":         {pod: map[string]string{source: "file", hash: "h1"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := withAnnotations(running("etcd"), "mirror", test.server)
			pod := withAnnotations(deleted(ended(running("etcd"))), "static", test.pod)
			pod.Generation = 9
			c := flush(t, server, pod)
			if !test.written {
				require.Equal(t, []string{"get"}, c.verbs(), "nothing is written")
				return
			}
			require.Equal(t, []string{"get", "patch status"}, c.verbs(), "a mirror pod is not deleted")
			require.Contains(t, c.callsOf("patch status")[0].Body, `"uid":"mirror"`)
			require.Equal(t, v1.PodFailed, c.pod(t, "etcd").Status.Phase)
			require.NotContains(t, c.callsOf("patch status")[0].Body, "observedGeneration", "the generation is the manifest's")
		})
	}
	t.Run("the argument is the mirror pod", func(t *testing.T) {
		server := withAnnotations(running("etcd"), "mirror", map[string]string{mirror: "h1"})
		require.Equal(t, []string{"get", "patch status"}, flush(t, server, deleted(ended(server))).verbs())
	})
	t.Run("the mirror pod was replaced", func(t *testing.T) {
		c := newCluster(withAnnotations(running("etcd"), "mirror", map[string]string{mirror: "h1"}))
		c.fault = failFirst(1, "patch status", anotherUID)
		pod := withAnnotations(ended(running("etcd")), "static", map[string]string{source: "file", hash: "h1"})
		require.True(t, apierrors.IsInvalid(c.reporter(t).FlushPod(t.Context(), pod)), "the next attempt writes to the new mirror pod")
	})
}
