package shutdown_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/shutdown"
)

// The settings are those of a KubeletConfiguration file.
func ExampleConfig_Schedule() {
	var cfg shutdown.Config
	if err := yaml.Unmarshal([]byte(`
shutdownGracePeriod: 30s
shutdownGracePeriodCriticalPods: 10s
`), &cfg); err != nil {
		fmt.Println(err)
	}
	for _, bucket := range cfg.Schedule(true) {
		fmt.Printf("pods of priority %d and above: %d s\n", bucket.Priority, bucket.Seconds)
	}
	// Output:
	// pods of priority 0 and above: 20 s
	// pods of priority 2000000000 and above: 10 s
}

func ExampleConfig_Validate() {
	cfg := shutdown.Config{
		ShutdownGracePeriod:             metav1.Duration{Duration: time.Second},
		ShutdownGracePeriodCriticalPods: metav1.Duration{Duration: 2 * time.Second},
	}
	fmt.Println(cfg.Validate(nil))
	// Output:
	// invalid configuration: shutdownGracePeriodCriticalPods {2s} must be <= shutdownGracePeriod {1s}
}

// A host that waits for 30 s takes the time from the least important pods.
func ExampleSchedule_Fit() {
	wanted := shutdown.Schedule{{Priority: 0, Seconds: 60}, {Priority: 1000, Seconds: 25}, {Priority: 2_000_000_000, Seconds: 10}}
	fmt.Println(wanted.Total(), wanted.Fit(30*time.Second))
	// Output:
	// 1m35s [{0 0} {1000 20} {2000000000 10}]
}

func ExampleSchedule_Index() {
	s := shutdown.Schedule{{Priority: 0, Seconds: 20}, {Priority: 1000, Seconds: 10}}
	fmt.Println(s.Index(-5), s.Index(0), s.Index(999), s.Index(1000), s.Index(2_000_000_000))
	// Output:
	// 0 0 0 1 1
}
