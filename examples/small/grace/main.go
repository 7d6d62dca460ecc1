// Command grace prints the grace period of each container of a pod, and the rules behind it. It reads pods as YAML
// or JSON:
//
//	kubectl get pods -o yaml | grace
//	grace < pod.yaml
package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// main prints the grace period of each container in the pods and lists of pods on standard input.
func main() {
	log.SetFlags(0)
	documents := yaml.NewYAMLOrJSONDecoder(os.Stdin, 4096)
	for {
		var document struct {
			v1.Pod `json:",inline"`
			Items  []v1.Pod `json:"items"` // if it is a list
		}
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			log.Fatalf("standard input: %v", err)
		}
		for _, pod := range append(document.Items, document.Pod) { // the Pod of a list has no containers
			if pod.Spec.TerminationGracePeriodSeconds == nil { // a manifest: the API server would set the default
				seconds := graceperiod.DefaultSeconds
				pod.Spec.TerminationGracePeriodSeconds = &seconds
			}
			for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
				fmt.Printf("%s/%s: %v\n", pod.Name, container.Name, graceperiod.ExplainContainer(&pod, &container, graceperiod.ReasonUnknown))
			}
		}
	}
}
