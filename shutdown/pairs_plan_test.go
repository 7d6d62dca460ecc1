//go:build linux && go1.25

package shutdown_test

import (
	"time"
)

const (
	// pairsAsked is what a drain asks of the host, but for the margin, for Hold, Volumes and Prepare.
	pairsAsked   = 25 * time.Second
	pairsHold    = 3 * time.Second
	pairsVolumes = 2 * time.Second // of each bucket
	// pairsPrepare is taken from the pods' time.
	pairsPrepare = 2 * time.Second
)

func (w *pairsWorld) asks() time.Duration {
	asks := pairsAsked
	if w.hasFault("hold") {
		asks += pairsHold
	}
	if w.hasFault("volumes") {
		asks += time.Duration(len(pairsSchedule)) * pairsVolumes
	}
	if w.hasFault("prepare") {
		asks += pairsPrepare
	}
	return asks
}

// pairsPlan is a moment at which the time of a shutdown is divided anew, and what was there.
type pairsPlan struct {
	at, end time.Time
	pods    map[*pairsPod]time.Duration // what each needs
}

// plan records what the pods need that are listed now.
func (w *pairsWorld) plan() {
	s := w.table.current
	p := pairsPlan{at: time.Now(), end: w.planEnd(), pods: map[*pairsPod]time.Duration{}}
	for _, pod := range w.pods {
		if pod.ended.IsZero() && !time.Now().Before(pod.listed) {
			p.pods[pod] = time.Duration(min(*pod.pod.Spec.TerminationGracePeriodSeconds, pairsSchedule[pod.bucket].seconds)) * time.Second
			if left, known := w.left(pod); known {
				p.pods[pod] = max(left, 0)
			}
		}
	}
	s.plans = append(s.plans, p)
}

// planEnd returns when the pods' time is over.
func (w *pairsWorld) planEnd() time.Time {
	s := w.table.current
	end := s.end
	if s.asked.Before(end) {
		end = s.asked
	}
	if !s.h.IsZero() && s.h.Before(end) { // what an earlier drain has used up is not asked for again
		end = s.h
	}
	if w.hasFault("prepare") {
		end = end.Add(-pairsPrepare)
	}
	return end
}

// left returns what is left to a pod by the kills that the running agent knows of.
func (w *pairsWorld) left(p *pairsPod) (left time.Duration, known bool) {
	for _, k := range p.kills {
		if k.agent == w.agent() || k.of == w.table.current && !k.terminateAll && k.agent.life().Sub(k.at) > pairsLag {
			if is := time.Until(k.until()); !known || is < left {
				left, known = is, true
			}
		}
	}
	return left, known
}

// leaves returns what a plan leaves for the pods of a bucket: the highest bucket is served first.
func (p pairsPlan) leaves(bucket int) time.Duration {
	left := p.end.Sub(p.at)
	for i := len(pairsSchedule) - 1; ; i-- {
		need := time.Duration(0)
		for pod, needs := range p.pods {
			if pod.bucket == i {
				need = max(need, needs)
			}
		}
		if i == bucket {
			return min(left, need)
		}
		left = max(left-need, 0)
	}
}
