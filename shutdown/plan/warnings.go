package plan

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// warnings returns the warnings about the whole schedule, about the other parts of the delay (the hold, and the steps beside the
// kills), and about each bucket. ofUnknownClasses are the pods whose priority classes are unknown. A warning about several pods names one of them and their number, which keeps the list short.
func (p *Plan) warnings(ofUnknownClasses []*v1.Pod) []string {
	var texts []string
	ofBuckets := make([]string, 0, len(p.Buckets)) // the warnings about the buckets
	podsLoseTime := false
	for i := range p.Buckets {
		bucket := &p.Buckets[i]
		wanted, fitted := p.Wanted.Buckets[i].Pods, p.Fitted.Buckets[i].Pods
		if len(bucket.Pods) > 0 && fitted < wanted {
			podsLoseTime = true
		}
		ofBuckets = append(ofBuckets, bucket.warnings(fitted)...)
	}
	if wanted, fitted := p.Wanted.Pods(), p.Fitted.Pods(); fitted < wanted {
		text := fmt.Sprintf("the schedule takes %v but is cut to %v", wanted, fitted)
		if !podsLoseTime {
			text += ", only in buckets without pods"
		}
		texts = append(texts, text)
	}
	if wanted, fitted := p.Wanted.Hold, p.Fitted.Hold; fitted < wanted {
		texts = append(texts, fmt.Sprintf("the hold gets %v of the requested %v", fitted, wanted))
	}
	if wanted, fitted := p.Wanted.Beside(), p.Fitted.Beside(); fitted < wanted {
		texts = append(texts, fmt.Sprintf("publishing, readiness, unmounts and final statuses get %v of the requested %v", fitted, wanted))
	}
	texts = append(texts, ofBuckets...)
	if len(ofUnknownClasses) > 0 {
		first := ofUnknownClasses[0]
		texts = append(texts, fmt.Sprintf("pods of unknown priority classes count as priority 0 (pods: %d, first: %s of class %q)",
			len(ofUnknownClasses), describe(first), first.Spec.PriorityClassName))
	}
	return texts
}

// warnings returns the warnings about one bucket; fitted is the time of its pods after [Budget.Fit].
func (b *BucketPlan) warnings(fitted time.Duration) []string {
	if len(b.Pods) == 0 { // too little time harms no pod
		return nil
	}
	var texts []string
	if b.Seconds < b.WantedSeconds {
		texts = append(texts, fmt.Sprintf("bucket %d is cut from %ds to %v", b.Priority, b.WantedSeconds, fitted.Round(100*time.Millisecond)))
	}
	// Pods of a bucket that was cut to less than 1 s may get time that lower buckets leave unused.
	anyPodHasTime := slices.ContainsFunc(b.Pods, func(p PodPlan) bool { return p.GrantedSeconds > 0 })
	if b.Seconds == 0 && !anyPodHasTime {
		return append(texts, fmt.Sprintf("bucket %d has no time, its pods (%d) are killed at once", b.Priority, len(b.Pods)))
	}
	if worst, number := b.truncated(); number > 0 {
		texts = append(texts, fmt.Sprintf("bucket %d is too short for %d of its %d pods: %s asks for %ds and gets %ds",
			b.Priority, number, len(b.Pods), describe(worst.Pod), worst.WantedSeconds, worst.GrantedSeconds))
	}
	return texts
}

// truncated returns the number of pods that get less than their grace period. worst is the one of them that asks
// for the longest grace period.
func (b *BucketPlan) truncated() (worst PodPlan, number int) {
	for _, p := range b.Pods {
		if !p.Truncated() {
			continue
		}
		number++
		if p.WantedSeconds > worst.WantedSeconds {
			worst = p
		}
	}
	return worst, number
}

// describe names a pod as NAMESPACE/NAME.
func describe(pod *v1.Pod) string { return pod.Namespace + "/" + pod.Name }
