// An agent of the packages that a node with systemd needs, for the size of its binary.
package main

import (
	"context"
	"log"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/metrics"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/logind"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
)

// runtime has no containers.
type runtime struct{}

func (runtime) Running(context.Context, *v1.Pod) ([]lifecycle.Container, error) { return nil, nil }
func (runtime) StopContainer(context.Context, string, int64) error              { return nil }

// run runs the agent until ctx ends.
func run(ctx context.Context, registry *prometheus.Registry) error {
	hooks, err := metrics.NewLifecycle(registry, metrics.Options{})
	if err != nil {
		return err
	}
	drains, err := metrics.NewShutdown(registry, metrics.Options{})
	if err != nil {
		return err
	}
	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{
		Runtime: runtime{},
		Metrics: hooks,
	})
	if err != nil {
		return err
	}
	host, err := logind.New(logind.Options{})
	if err != nil {
		return err
	}
	manager, err := shutdown.NewManager(shutdown.Options{
		Config:   plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: 30 * time.Second}},
		ListPods: shutdown.ListPodsFunc(func() []*v1.Pod { return nil }, nil),
		Killer:   podkiller.New(terminator, podkiller.Options{}),
		Source:   host,
		Metrics:  drains,
		StateDir: "/var/lib/agent",
	})
	if err != nil {
		return err
	}
	return manager.Run(ctx)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, prometheus.NewRegistry()); err != nil {
		log.Fatal(err)
	}
}
