package apistatus_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubegrace/kubegrace/shutdown/apistatus"
)

// BenchmarkFlush gives 500 pods their final status over TCP, ten at a time, beside the
// plain way: a goroutine for each pod that reads and updates it, with a client whose
// limits were raised.
func BenchmarkFlush(b *testing.B) {
	run := func(b *testing.B, client func(*rest.Config) (kubernetes.Interface, error), flush func(*testing.B, kubernetes.Interface, []*v1.Pod)) {
		server, _, pods := serveCrowd(b, 500)
		before := server.pods()
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			for i := range before {
				server.setStatus(&before[i])
			}
			c, err := client(&rest.Config{Host: server.URL()}) // with all of its burst
			require.NoError(b, err)
			b.StartTimer()
			flush(b, c, pods)
		}
		require.Equal(b, len(pods), server.terminated())
	}
	b.Run("Reporter", func(b *testing.B) {
		run(b, apistatus.NewClient, func(b *testing.B, client kubernetes.Interface, pods []*v1.Pod) {
			for _, err := range tenAtATime(b, pods, reporterOf(b, client, 0).FlushPod) {
				require.NoError(b, err)
			}
		})
	})
	b.Run("Plain", func(b *testing.B) {
		run(b, raisedClient, flushPlainly)
	})
}

// raisedClient is client-go's own with the limits of a flush.
func raisedClient(config *rest.Config) (kubernetes.Interface, error) {
	config.QPS, config.Burst = 1000, 1500
	config.ContentType = runtime.ContentTypeJSON
	return kubernetes.NewForConfig(config)
}

// flushPlainly reads and updates each pod in a goroutine of its own.
func flushPlainly(b *testing.B, client kubernetes.Interface, pods []*v1.Pod) {
	var wg sync.WaitGroup
	results := make([]error, len(pods))
	for i, pod := range pods {
		wg.Go(func() {
			api := client.CoreV1().Pods(pod.Namespace)
			server, err := api.Get(b.Context(), pod.Name, metav1.GetOptions{})
			if err == nil {
				server.Status.Phase, server.Status.Reason = v1.PodFailed, pod.Status.Reason
				server.Status.Conditions = pod.Status.Conditions
				_, err = api.UpdateStatus(b.Context(), server, metav1.UpdateOptions{})
			}
			results[i] = err
		})
	}
	wg.Wait()
	for _, err := range results {
		require.NoError(b, err)
	}
}
