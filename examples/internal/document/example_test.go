package document_test

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/examples/internal/document"
)

func ExampleDecode() {
	docs, err := document.Parse("web.yaml", []byte(`
metadata: {name: web}
---
metadata: {name: db}
spec: {terminationGracePeriodSeconds: soon}
`))
	if err != nil {
		fmt.Println(err)
	}
	for _, doc := range docs {
		pod, err := document.Decode[v1.Pod](doc)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(pod.Name)
	}
	// Output:
	// web
	// web.yaml (document 2): spec.terminationGracePeriodSeconds: Invalid value: "soon": must be a whole number of 64 bits
}
