package timetable_test

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// modelDrain is a drain by a model: how far it is, and what the buckets so far have left.
type modelDrain struct {
	*model
	now, left time.Duration
}

// skip passes a bucket without pods.
func (d *modelDrain) skip(i int) {
	if !d.request.Options.NoRollOver {
		d.left += time.Duration(d.seconds[i]) * time.Second
	}
}

// ends returns when bucket i, which starts now, ends at the latest, and how long its pods
// have if they are killed at a time.
func (d *modelDrain) ends(i int, at time.Duration) (end, grace time.Duration) {
	end, grace = d.starts[i+1], time.Duration(d.seconds[i])*time.Second
	switch {
	case d.seconds[i] == 0:
		return min(d.now, end), 0
	case d.request.Options.NoRollOver:
		end = min(d.now, d.starts[i]) + d.bucket(i)
	default:
		grace += d.left
	}
	return end, max(min(grace, end-d.unmount[i]-d.statuses[i]-at), 0)
}

// marksEnd is when the wait for the marks of bucket i, which starts now, ends at the latest: a
// bucket that starts late has less time for marks, not for pods.
func (d *modelDrain) marksEnd(i int) time.Duration {
	end, _ := d.ends(i, d.now)
	latest := end - d.unmount[i] - d.statuses[i] - time.Duration(d.seconds[i])*time.Second
	return min(max(d.now, min(d.now+d.readiness[i], latest)), d.h)
}

// granted is the grace period of a pod of bucket i.
func (d *modelDrain) granted(i int, pod *v1.Pod, at time.Duration) int64 {
	_, grace := d.ends(i, at)
	seconds := int64((grace + 100*time.Millisecond) / time.Second)
	if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
		return min(seconds, max(*own, 0))
	}
	return min(seconds, d.seconds[i])
}

// pass goes on to the next bucket: the pods of bucket i were killed at a time and took used
// to end, and what followed took after. A bucket without time is not waited for.
func (d *modelDrain) pass(i int, at, used, after time.Duration) {
	if d.seconds[i] == 0 {
		return
	}
	end, grace := d.ends(i, at)
	d.now = max(d.now, min(at+used+after, end, d.h))
	if d.left = max(grace-used, 0); d.request.Options.NoRollOver {
		d.left = 0
	}
}

// modelPlan is what a drain does in which each bucket with pods takes all of its time.
type modelPlan struct {
	granted []int64         // of each pod
	starts  []time.Duration // of each bucket, and of what follows the last
}

// planned plans the drain of pods.
func (m *model) planned(pods []*v1.Pod) modelPlan {
	d, in := &modelDrain{model: m, now: min(m.starts[0], m.h)}, make([][]int, len(m.seconds))
	p := modelPlan{granted: make([]int64, len(pods))}
	for k, pod := range pods {
		i := m.bucketOf(pod)
		in[i] = append(in[i], k)
	}
	for i := range m.seconds {
		p.starts = append(p.starts, d.now)
		at := min(d.now+m.readiness[i], m.h)
		for _, k := range in[i] {
			p.granted[k] = d.granted(i, pods[k], at)
		}
		if len(in[i]) == 0 {
			d.skip(i)
		} else {
			d.pass(i, at, noLimit, 0)
		}
	}
	p.starts = append(p.starts, d.now)
	return p
}
