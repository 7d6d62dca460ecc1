package shutdown

import (
	"time"
)

// finish waits for stragglers and flushes what is left, until the host's end;
// then it reports and lets the host go on. A drain that the end of Run has
// interrupted has no end, so that the next agent resumes it.
func (d *drain) finish() (ended time.Time) {
	until := d.table.Release().Add(-d.statusReserve())
	for _, b := range d.batches {
		d.straggled = !d.await(b.done, until) || d.straggled
	}
	d.flushLast()
	if d.interrupted() {
		d.m.last.set(d.began, d.result(time.Time{}))
		return time.Time{}
	}
	if d.hosted && !d.retired() && !d.m.lock.status().Held {
		d.note(errNotDelayed)
	}
	ended = time.Now()
	report := d.result(ended)
	d.m.last.set(d.began, report)
	d.saveTimes(ended)
	d.store(ended, report)
	d.releasing()
	d.note(d.m.lock.release(d.epoch))
	if d.storesLater() {
		d.beside = append(d.beside, d.save(0, report))
	}
	return ended
}

// store stores the report before the host is let go. Of very many pods only the
// outline is: theirs is stored beside the release, for they would hold the host
// for longer than they took to end.
func (d *drain) store(ended time.Time, report func() Report) {
	if d.storesLater() {
		outline := d.outline(ended)
		report = func() Report { return outline }
	}
	stored := d.save(0, report)
	d.settled(stored.done, &stored.err, d.table.Unlock(), "store the report")
}

// conclude makes the report of a drain whose pods have all ended, and stores it
// if it says more than what is stored.
func (d *drain) conclude(ended time.Time) {
	for _, write := range d.beside {
		d.note(write.err)
	}
	report := d.result(ended)
	d.final = report()
	d.m.setReport(d.final)
	if d.interrupted() || !d.straggled {
		return
	}
	stored := d.save(0, func() Report { return d.final })
	<-stored.done
	if stored.err != nil {
		d.note(stored.err)
		d.final.Errors = texts(d.errs)
		d.m.setReport(d.final)
	}
}
