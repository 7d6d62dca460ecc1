package view_test

import (
	"os"
	"time"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/view"
	"github.com/kubegrace/kubegrace/lifecycle"
)

func ExampleView() {
	began := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	web := view.Pod{Name: "shop/web", Bucket: 1000, State: view.Running}
	v := view.New(os.Stdout)
	v.Say("1 of 1 pods run.")
	v.Show(view.Snapshot{Now: began, Pods: []view.Pod{web}})

	web.State, web.Granted, web.Deadline = view.Ending, 30, began.Add(30*time.Second)
	web.Containers = []view.Container{{Signal: "SIGTERM", ContainerResult: lifecycle.ContainerResult{Name: "nginx", Phase: lifecycle.PhaseStopping}}}
	v.Show(view.Snapshot{Now: began.Add(time.Second), Began: began, Allowed: time.Minute, Pods: []view.Pod{web}})
	// Output:
	// 1 of 1 pods run.
	// shop/web                 runs
	// Shutting down 1 pod in 1 bucket, the lowest priority first; it may take up to 1m.
	//     1s  shop/web                 got SIGTERM, is ending (29s left)
}
