package api

import (
	"k8s.io/apimachinery/pkg/types"

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
				Namespace: pod.Pod.Namespace, Name: pod.Pod.Name, Priority: pod.Priority,
				WantedSeconds: pod.WantedSeconds, GrantedSeconds: pod.GrantedSeconds, CutShort: pod.Truncated(),
				StartSeconds: pod.Start.Seconds(), EndSeconds: pod.End.Seconds(),
			})
		}
		converted.Buckets = append(converted.Buckets, bucket)
	}
	return converted
}

// ReportOf converts a report of the library.
func ReportOf(r shutdown.Report) Report {
	converted := Report{
		Meta: Meta{Version, "Report"}, Shutdown: string(r.Kind), Origin: r.Origin,
		Started: r.Started, Ended: r.Ended, Cancelled: r.Cancelled,
		Pods: make([]PodReport, 0, len(r.Pods)), Errors: r.Errors,
	}
	for _, p := range r.Pods {
		converted.Pods = append(converted.Pods, PodReport{
			Namespace: p.Namespace, Name: p.Name, UID: string(p.UID), Priority: p.Priority, Bucket: p.Bucket,
			GrantedSeconds: p.GrantedSeconds, Started: p.Started, Ended: p.Ended,
			Outcome: p.Outcome, Error: p.Error, Unacknowledged: p.Unflushed,
		})
	}
	return converted
}

// Library converts a Report back to a report of the library.
func (r Report) Library() shutdown.Report {
	converted := shutdown.Report{Kind: shutdown.Kind(r.Shutdown), Origin: r.Origin, Started: r.Started, Ended: r.Ended, Cancelled: r.Cancelled, Errors: r.Errors}
	for _, p := range r.Pods {
		converted.Pods = append(converted.Pods, shutdown.PodReport{
			Namespace: p.Namespace, Name: p.Name, UID: types.UID(p.UID), Priority: p.Priority, Bucket: p.Bucket,
			GrantedSeconds: p.GrantedSeconds, Started: p.Started, Ended: p.Ended,
			Outcome: p.Outcome, Error: p.Error, Unflushed: p.Unacknowledged,
		})
	}
	return converted
}
