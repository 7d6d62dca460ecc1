//go:build go1.25

package apistatus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubegrace/kubegrace/internal/apiserverproxy"
	"github.com/kubegrace/kubegrace/shutdown/apistatus"
)

// BenchmarkFlush measures the time for one final status over TCP with a server that delays each
// request. It sends the statuses of 500 pods, ten at a time, as a shutdown does. "plain" reads and
// patches 25 pods one after the other, as the kubelet does.
func BenchmarkFlush(b *testing.B) {
	server, _, pods := serveWithPods(b, 500)
	running := map[string]*v1.Pod{} // the pods before they got their final statuses, by name
	for _, pod := range server.pods() {
		running[pod.Name] = &pod
	}
	for _, delay := range []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond} {
		measure := func(b *testing.B, n int, client func(*rest.Config) (kubernetes.Interface, error), flush func(*testing.B, kubernetes.Interface, []*v1.Pod)) {
			for b.Loop() {
				b.StopTimer()
				c, err := client(&rest.Config{Host: server.URL()}) // a new client has its full burst
				require.NoError(b, err)
				b.StartTimer()
				flush(b, c, pods[:n])
				b.StopTimer()
				require.Equal(b, n, server.finalStatusCount())
				// Each pod runs again for the next iteration.
				tenAtATime(b, pods[:n], func(_ context.Context, pod *v1.Pod) error {
					server.setStatus(running[pod.Name])
					return nil
				})
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/status")
			b.ReportMetric(0, "ns/op")
		}
		server.Script(apiserverproxy.Always(apiserverproxy.Fault{Delay: delay}))
		name := fmt.Sprintf("request=%v", delay)
		const plainPods = 25 // one after the other, 500 would take too long
		b.Run(name+"/way=plain", func(b *testing.B) { measure(b, plainPods, unlimitedClient, flushPlainly) })
		b.Run(name+"/way=kubegrace", func(b *testing.B) {
			measure(b, len(pods), apistatus.NewClient, func(b *testing.B, client kubernetes.Interface, pods []*v1.Pod) {
				for _, err := range tenAtATime(b, pods, reporterOf(b, client, time.Minute).FlushPod) {
					require.NoError(b, err)
				}
			})
		})
	}
}

// unlimitedClient returns a clientset of client-go without a rate limit.
func unlimitedClient(config *rest.Config) (kubernetes.Interface, error) {
	config.QPS = -1
	return kubernetes.NewForConfig(config)
}

// flushPlainly reads and patches one pod after the other.
func flushPlainly(b *testing.B, client kubernetes.Interface, pods []*v1.Pod) {
	for _, pod := range pods {
		api := client.CoreV1().Pods(pod.Namespace)
		read, err := api.Get(b.Context(), pod.Name, metav1.GetOptions{})
		require.NoError(b, err)
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": read.UID}, "status": pod.Status})
		require.NoError(b, err)
		_, err = api.Patch(b.Context(), pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		require.NoError(b, err)
	}
}
