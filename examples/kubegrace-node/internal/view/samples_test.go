package view

import (
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/kubegrace/kubegrace/shutdown"
)

func sampleReport() shutdown.Report {
	return shutdown.Report{
		Kind: source.KindReboot, Origin: "logind", Started: began, Ended: began.Add(6500 * time.Millisecond),
		Pods: []shutdown.PodReport{
			{Namespace: "kube-system", Name: daemonSetPod[len("kube-system/"):], UID: "1", GrantedSeconds: 5, Started: began, Ended: began.Add(5 * time.Second), Outcome: "GraceExceeded"},
			{Namespace: "shop", Name: "web", UID: "2", Priority: 1500, Bucket: 1000, GrantedSeconds: 9, Started: began.Add(5 * time.Second), Ended: began.Add(6 * time.Second), Outcome: "Graceful", Unflushed: true},
			{Namespace: "data", Name: "postgres", UID: "3", Priority: 1500, Bucket: 1000, GrantedSeconds: 9, Started: began.Add(5 * time.Second), Outcome: "RuntimeStuck", Error: "the container runtime is away"},
		},
		Errors: []string{"failed to publish the node's state: connection refused"},
	}
}
