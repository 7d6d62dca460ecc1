package kills

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// Picker picks the pods of one drain. The pods are listed again before each bucket, and almost
// always a pod has the same index as before, so a list that has not changed costs a comparison of
// pointers for each pod. Only one goroutine may use a picker.
type Picker struct {
	account *Account
	passage uint64
	listed  []*v1.Pod // a copy of the last list
	kills   []*Kill   // of listed, with the same indexes; nil for none
	alone   bool      // the account was empty before listed: each of its kills is listed if there are as many
}

// NewPicker returns a picker for a drain. passage is the number of the drain: a pod that a drain
// of a higher number has picked is left to that one.
func NewPicker(account *Account, passage uint64) *Picker {
	return &Picker{account: account, passage: passage}
}

// AddListed adds the pods of a list to the account. priorities returns the priorities of pods that
// are new in the account; it may call an embedder's code.
func (p *Picker) AddListed(pods []*v1.Pod, priorities func([]*v1.Pod) []int32) {
	if slices.Equal(pods, p.listed) {
		return
	}
	p.alone = len(p.account.All()) == 0
	p.kills = p.account.addListed(pods, priorities)
	p.listed = append(p.listed[:0], pods...)
}

// Due returns the kills that the drain has to see to: those of listed pods and of pods that were
// signalled before, or may have been, that are not known to have ended.
func (p *Picker) Due() []*Kill {
	due := make([]*Kill, 0, len(p.kills))
	for _, k := range p.kills {
		if k != nil && !k.HasEnded() {
			due = append(due, k)
		}
	}
	all := p.account.All()
	if p.alone && len(all) == len(p.listed) {
		return due
	}
	listed := make(map[*Kill]struct{}, len(due))
	for _, k := range due {
		listed[k] = struct{}{}
	}
	for _, k := range all {
		if _, is := listed[k]; !is && k.mayNeed() {
			due = append(due, k)
		}
	}
	return due
}

// Pick returns the kills that are due in a bucket, which wants decides by the pod's priority:
// those of listed pods that have not ended, and those of pods that were signalled before, or may
// have been by a former agent, and are not known to have ended, listed or not. bucket is the
// priority that names the bucket. Each pod is picked once by a drain.
func (p *Picker) Pick(bucket int32, wants func(priority int32) bool) []*Kill {
	picked := make([]*Kill, 0, len(p.kills))
	for _, k := range p.kills {
		if k != nil && wants(k.Priority) && k.take(p.passage, bucket) {
			picked = append(picked, k)
		}
	}
	all := p.account.All()
	if p.alone && len(all) == len(p.listed) {
		return slices.Clip(picked)
	}
	for _, k := range all {
		if wants(k.Priority) && k.mayNeed() && k.take(p.passage, bucket) {
			picked = append(picked, k)
		}
	}
	return slices.Clip(picked)
}
