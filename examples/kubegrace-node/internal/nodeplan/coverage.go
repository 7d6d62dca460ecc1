package nodeplan

import (
	"cmp"
	"maps"
	"slices"
)

// longestBucket is the longest bucket that is proposed. A longer grace period is not meant for a shutdown.
const longestBucket = 10 * 60

// coverage says, for each bucket, what its pods ask for and how long a proposed configuration makes it. Pods that ask for
// too much are left out of it.
type coverage struct {
	// critical is the most that a critical pod asks for, and asked the most that another pod asks for. seconds is what is
	// proposed: the longest of both and of what the bucket has now.
	critical, asked, seconds []int64
}

// coverage determines what a proposed configuration gives. Every critical pod gets what it asks for, if that is at most
// longestBucket or what its bucket has now. Of the others 99 in 100 do, or all if they are fewer than 100, up to longestBucket.
func (s Settings) coverage(asks map[ask]int) coverage {
	n := len(s.schedule)
	c := coverage{make([]int64, n), make([]int64, n), make([]int64, n)}
	graces := make([][]int64, n) // one for each pod that is not critical
	for a, count := range asks {
		switch {
		case !a.critical:
			graces[a.bucket] = append(graces[a.bucket], slices.Repeat([]int64{a.seconds}, count)...)
		case a.seconds <= max(longestBucket, s.schedule[a.bucket].Seconds):
			c.critical[a.bucket] = max(c.critical[a.bucket], a.seconds)
		}
	}
	for i, of := range graces {
		slices.Sort(of)
		of = of[:len(of)-len(of)/100]
		if beyond := slices.IndexFunc(of, func(grace int64) bool { return grace > longestBucket }); beyond >= 0 {
			of = of[:beyond]
		}
		if len(of) > 0 {
			c.asked[i] = of[len(of)-1]
		}
		c.seconds[i] = max(c.asked[i], c.critical[i], s.schedule[i].Seconds)
	}
	return c
}

// outliers returns the workloads with pods that ask for more than a proposed configuration gives them; those that ask for
// most come first.
func (c coverage) outliers(asks map[ask]int) (all []Outlier) {
	found := map[string]Outlier{}
	for a, count := range asks {
		if a.seconds > c.seconds[a.bucket] {
			o := found[a.workload]
			found[a.workload] = Outlier{a.workload, o.PodCount + count, max(o.AsksSeconds, a.seconds), o.Critical || a.critical}
		}
	}
	all = slices.SortedFunc(maps.Values(found), func(a, b Outlier) int {
		return cmp.Or(cmp.Compare(b.AsksSeconds, a.AsksSeconds), cmp.Compare(a.Name, b.Name))
	})
	return all[:min(len(all), MaxWorst)]
}
