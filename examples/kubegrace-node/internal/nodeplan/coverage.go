package nodeplan

import (
	"cmp"
	"maps"
	"slices"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// longestBucket is the longest bucket that is proposed. A longer grace period is not meant for a shutdown.
const longestBucket = 10 * 60

// longerSchedule returns the schedule of a proposed configuration: each bucket is as long as its pods ask for, and never shorter
// than it was. Every critical pod counts, and of the others 99 in 100, or all if they are fewer than 100, but no pod that asks
// for more than longestBucket.
func (s Settings) longerSchedule(asks map[ask]int) plan.Schedule {
	longer := slices.Clone(s.schedule)
	graces := make([][]int64, len(longer)) // one for each pod that is not critical
	for a, count := range asks {
		if !a.critical {
			graces[a.bucket] = append(graces[a.bucket], slices.Repeat([]int64{a.seconds}, count)...)
		} else if a.seconds <= longestBucket {
			longer[a.bucket].Seconds = max(longer[a.bucket].Seconds, a.seconds)
		}
	}
	for i, of := range graces {
		slices.Sort(of)
		for _, grace := range of[:len(of)-len(of)/100] {
			if grace <= longestBucket {
				longer[i].Seconds = max(longer[i].Seconds, grace)
			}
		}
	}
	return longer
}

// outliers returns the workloads with pods that ask for more than a schedule gives them; those that ask for most come first.
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
