package nodeplan

import (
	"cmp"
	"maps"
	"slices"
)

// longestBucket is the longest bucket that is proposed. A longer grace period is not meant for a shutdown.
const longestBucket = 10 * 60

// coverage says what a proposed configuration gives the pods of each bucket.
type coverage struct {
	// critical is what all critical pods ask for. seconds covers the other pods too, but for outliers.
	critical, seconds []int64
	// graces has how many pods ask for how many seconds, up to those of the coverage.
	graces []map[int64]int
}

// coverage determines what a proposed configuration gives: every critical pod gets what it asks for,
// and of the others 99 in 100, or all if they are fewer than 100, up to longestBucket.
func (s Settings) coverage(asks map[ask]int) coverage {
	n := len(s.schedule)
	c := coverage{make([]int64, n), make([]int64, n), make([]map[int64]int, n)}
	counts := make([]int, n)
	for i := range n {
		c.graces[i] = map[int64]int{}
	}
	for a, count := range asks {
		if a.critical {
			c.critical[a.bucket] = max(c.critical[a.bucket], a.seconds)
			continue
		}
		c.graces[a.bucket][a.seconds] += count
		counts[a.bucket] += count
	}
	for i, graces := range c.graces {
		spare := counts[i] / 100
		for _, grace := range slices.Backward(slices.Sorted(maps.Keys(graces))) {
			if grace <= longestBucket && graces[grace] > spare {
				c.seconds[i] = grace
				break
			}
			spare -= graces[grace]
			delete(graces, grace)
		}
		c.seconds[i] = max(c.seconds[i], c.critical[i], s.schedule[i].Seconds)
	}
	return c
}

// isReasonable is false if critical pods ask for more than longestBucket: no configuration that gives them
// less is proposed, and none that gives so much to a few pods.
func (c coverage) isReasonable() bool { return slices.Max(c.critical) <= longestBucket }

// outliers returns the workloads with pods that ask for more than a proposed configuration gives them, and
// the critical ones for which none is proposed; those that ask for most come first.
func (c coverage) outliers(asks map[ask]int) (all []Outlier) {
	found := map[string]Outlier{}
	for a, count := range asks {
		if a.seconds > c.seconds[a.bucket] || a.critical && a.seconds > longestBucket {
			o := found[a.workload]
			found[a.workload] = Outlier{a.workload, o.PodCount + count, max(o.AsksSeconds, a.seconds), o.Critical || a.critical}
		}
	}
	all = slices.SortedFunc(maps.Values(found), func(a, b Outlier) int {
		return cmp.Or(cmp.Compare(b.AsksSeconds, a.AsksSeconds), cmp.Compare(a.Name, b.Name))
	})
	return all[:min(len(all), MaxWorst)]
}
