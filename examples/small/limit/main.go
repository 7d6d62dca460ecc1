// Command limit prints how long a kubelet's configuration asks logind to delay a shutdown, and how much of this time
// the pods of each priority get.
//
//	limit /var/lib/kubelet/config.yaml
package main

import (
	"fmt"
	"log"
	"os"

	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// main prints the buckets of a kubelet's configuration, and which delays a kubelet and kubegrace request.
func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: limit FILE")
	}
	content, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	var config plan.Config
	if err := yaml.Unmarshal(content, &config); err != nil {
		log.Fatalf("%s: %v", os.Args[1], err)
	}
	if err := config.Validate(true, true); err != nil { // true: the gates GracefulNodeShutdown and GracefulNodeShutdownBasedOnPodPriority are on
		log.Fatalf("%s: %v", os.Args[1], err)
	}
	schedule := config.Schedule(true) // true: as above
	for _, bucket := range schedule {
		fmt.Printf("pods of priority %d and above: %d s\n", bucket.Priority, bucket.Seconds)
	}
	fmt.Println("a kubelet asks for", schedule.Total())
	fmt.Println("a drain of kubegrace asks for", plan.NewBudget(schedule, plan.Options{}).Total())
}
