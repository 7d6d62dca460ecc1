package api

import (
	"errors"
	"fmt"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podinfo"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// PlanOf converts a plan of the library.
func PlanOf(p plan.Plan) Plan {
	converted := Plan{
		Meta:           Meta{Version, "Plan"},
		AskedSeconds:   p.Wanted.Total().Seconds(),
		ReleaseSeconds: p.Release.Seconds(),
		Buckets:        make([]Bucket, 0, len(p.Buckets)),
		Warnings:       p.Warnings,
	}
	for _, b := range p.Buckets {
		bucket := Bucket{
			Priority: b.Priority, ConfiguredSeconds: b.WantedSeconds, Seconds: b.Seconds,
			StartSeconds: b.Start.Seconds(), EndSeconds: b.End.Seconds(), Pods: make([]PodPlan, 0, len(b.Pods)),
		}
		for _, pod := range b.Pods {
			bucket.Pods = append(bucket.Pods, PodPlan{
				Namespace: pod.Pod.Namespace, Name: pod.Pod.Name, Priority: pod.Priority, PrioritySource: pod.Pod.Annotations[podinfo.PrioritySource],
				WantedSeconds: pod.WantedSeconds, GrantedSeconds: pod.GrantedSeconds, CutShort: pod.Truncated(),
				StartSeconds: pod.Start.Seconds(), EndSeconds: pod.End.Seconds(),
			})
		}
		converted.Buckets = append(converted.Buckets, bucket)
	}
	return converted
}

// PodErrors returns an error that names the pods that were not stopped, nil if all were.
func (r Report) PodErrors() error {
	var errs []error
	for _, p := range r.Shutdown.Pods {
		if p.Error != "" {
			errs = append(errs, fmt.Errorf("pod %s/%s was not stopped: %s", p.Namespace, p.Name, p.Error))
		}
	}
	return errors.Join(errs...)
}

// ReportOf wraps a report of the library.
func ReportOf(r shutdown.Report) Report { return Report{Meta: Meta{Version, "Report"}, Shutdown: r} }
