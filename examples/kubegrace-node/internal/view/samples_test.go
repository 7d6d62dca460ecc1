package view

import (
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podinfo"
	"github.com/kubegrace/kubegrace/shutdown"
)

func samplePlan() api.Plan {
	return api.Plan{
		Meta: api.Meta{APIVersion: api.Version, Kind: "Plan"}, AskedSeconds: 20.5, ReleaseSeconds: 9.5,
		Buckets: []api.Bucket{
			{Priority: 0, ConfiguredSeconds: 5, Seconds: 0, Pods: []api.PodPlan{
				{Namespace: "kube-system", Name: daemonSetPod[len("kube-system/"):], PrioritySource: podinfo.Guessed, WantedSeconds: 30, CutShort: true},
			}},
			{Priority: 1000, ConfiguredSeconds: 10, Seconds: 9, EndSeconds: 9, Pods: []api.PodPlan{
				{Namespace: "shop", Name: "web", Priority: 1500, PrioritySource: podinfo.FromAPIServer, WantedSeconds: 9, GrantedSeconds: 9},
			}},
		},
		Warnings: []string{"bucket 0 has no time, its pods (1) are killed at once"},
	}
}

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
