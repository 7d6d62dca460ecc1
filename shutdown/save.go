package shutdown

import (
	"time"
)

// podsStoredAtOnce is how many pods' reports are stored before the host is let go.
const podsStoredAtOnce = 1000

// storesLater tells whether the pods' reports are stored beside the release.
func (d *drain) storesLater() bool { return len(d.roster.all()) > podsStoredAtOnce }

// saveBeside stores how far the drain has come while it goes on.
func (d *drain) saveBeside() {
	d.beside = append(d.beside, d.save(storeLag, d.progressReport()))
}

// save stores how far the drain has come.
func (d *drain) save(lag time.Duration, report func() Report) *entry {
	if d.local {
		return noEntry()
	}
	start, end := d.m.ledger.sinceBoot(d.table.First()), d.m.ledger.sinceBoot(d.table.Release())
	schedule, late, done := d.table.Schedule(), !d.table.NotBefore().IsZero(), d.done
	return d.m.ledger.writeProgress(d.writing(lag), func() progress {
		return progress{Start: start, HostEnd: end, Late: late, Schedule: schedule, Done: done, Report: report()}
	})
}

// saveTimes stores the start and the end of a shutdown of the node, and shows them.
func (d *drain) saveTimes(ended time.Time) {
	if d.local {
		return
	}
	d.m.opts.Metrics.Times(d.began, ended)
	d.beside = append(d.beside, d.m.ledger.writeTimes(d.writing(storeLag), times{StartTime: d.began, EndTime: ended}))
}

func (d *drain) writing(lag time.Duration) writing {
	return writing{ctx: d.ctx, work: &d.work, shutdown: d.number, lag: lag}
}
