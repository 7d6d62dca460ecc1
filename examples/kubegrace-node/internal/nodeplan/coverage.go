package nodeplan

import (
	"cmp"
	"maps"
	"slices"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// longestBucket is the length in seconds that a proposed bucket has at most, unless it is already longer. A
// pod with a longer grace period is not expected to need it in a shutdown.
const longestBucket = 10 * 60

// longerSchedule returns the schedule of a proposed configuration. Each bucket becomes as long as the longest
// grace period that counts in it, and never shorter than it was. A grace period of more than longestBucket
// does not count. Of the pods that are not critical, the 1 % with the longest grace periods do not count
// either, so that one odd pod does not delay every shutdown; of fewer than 100 pods all count.
func (s Settings) longerSchedule(asks map[ask]int) plan.Schedule {
	longer := slices.Clone(s.schedule)
	graces := make([][]int64, len(longer)) // by bucket: the grace period of each pod that is not critical
	for a, count := range asks {
		if !a.critical {
			graces[a.bucket] = append(graces[a.bucket], slices.Repeat([]int64{a.seconds}, count)...)
		} else if a.seconds <= longestBucket {
			longer[a.bucket].Seconds = max(longer[a.bucket].Seconds, a.seconds)
		}
	}
	for i, inBucket := range graces {
		slices.Sort(inBucket)
		for _, grace := range inBucket[:len(inBucket)-len(inBucket)/100] { // without the longest 1 %
			if grace <= longestBucket {
				longer[i].Seconds = max(longer[i].Seconds, grace)
			}
		}
	}
	return longer
}

// outliers returns the workloads with pods whose grace period is longer than their bucket in the schedule. The
// longest grace period comes first.
func outliers(asks map[ask]int, schedule plan.Schedule) (all []Outlier) {
	found := map[string]Outlier{}
	for a, count := range asks {
		if a.seconds > schedule[a.bucket].Seconds {
			o := found[a.workload]
			found[a.workload] = Outlier{a.workload, o.PodCount + count, max(o.AsksSeconds, a.seconds), o.Critical || a.critical}
		}
	}
	all = slices.SortedFunc(maps.Values(found), func(a, b Outlier) int {
		return cmp.Or(cmp.Compare(b.AsksSeconds, a.AsksSeconds), cmp.Compare(a.Name, b.Name))
	})
	return all[:min(len(all), MaxWorst)]
}
