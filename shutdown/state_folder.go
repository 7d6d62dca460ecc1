package shutdown

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/kubegrace/kubegrace/internal/staticpod"
	"github.com/kubegrace/kubegrace/shutdown/internal/statefile"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// folderLockTime bounds the wait for another agent to unlock the state folder.
const folderLockTime = 10 * time.Second

// storedState is what the state files contain.
type storedState struct {
	progress *progress // nil: no shutdown is stored, or the file is not usable
	times    times     // as the kubelet stores them
	errs     []error   // of files that are not usable
}

// stateFolder is the folder of the state files. It knows the rules of reading; the ledger writes.
type stateFolder struct {
	dir             string // "": nothing is stored
	keepsTimes      bool   // the kubelet's file is written
	byPriority      bool   // the kubelet's file is read
	boot            func() (id string, since time.Duration, err error)
	refused         func() uint64                     // returns the number of refused admissions
	longestShutdown func(plan.Schedule) time.Duration // the time of a whole drain with a schedule
	ledger          *ledger
}

// openLedger identifies the boot and opens a ledger in dir.
func (f *stateFolder) openLedger(dir string) {
	f.ledger = newLedger(dir, f.keepsTimes, f.refused, f.boot)
}

// unfinished returns the shutdown of this boot that may still go on; nil if there is none.
func (f *stateFolder) unfinished(r storedState) *progress {
	p := r.progress
	if p == nil || !p.goesOn() || p.BootID != f.ledger.bootID || !time.Now().Before(f.ledger.timeOf(p.HostEnd)) {
		return nil
	}
	return p
}

// lock locks the folder. If another agent keeps it locked, nothing is stored or resumed, and the
// error says so.
func (f *stateFolder) lock(ctx context.Context) (unlock io.Closer, err error) {
	if f.dir == "" {
		return io.NopCloser(nil), nil
	}
	ctx, cancel := context.WithTimeout(ctx, folderLockTime)
	defer cancel()
	unlock, err = statefile.Lock(ctx, f.dir)
	if err != nil {
		f.openLedger("")
		return io.NopCloser(nil), fmt.Errorf("failed to use the state folder, nothing is stored: %w", err)
	}
	return unlock, errors.Join(
		statefile.CheckFolder(f.dir),
		statefile.RemoveLeftovers(f.dir, timesFile, progressFile),
	)
}

// isOurs reports whether this agent uses the folder, or needs none.
func (f *stateFolder) isOurs() bool { return f.ledger.dir == f.dir }

// read reads the state files. Files that are not usable are skipped and reported in errs.
func (f *stateFolder) read() storedState {
	var r storedState
	if f.ledger.dir == "" {
		return r
	}
	var err error
	if r.progress, err = readProgress(f.ledger.dir); err == nil {
		err = f.checkNotFuture(r.progress)
	}
	if err != nil {
		r.progress, r.errs = nil, append(r.errs, err)
	}
	if f.byPriority {
		if r.times, err = readTimes(f.ledger.dir); err != nil {
			r.errs = append(r.errs, err)
		}
	}
	if r.progress != nil { // it is newer: it is written before the release, the times file beside it
		r.times = times{StartTime: r.progress.Report.Started, EndTime: r.progress.Report.Ended}
	}
	return r
}

// longestSlack is how much longer a stored shutdown may take than one with the options of this
// agent: the previous agent may have had others.
const longestSlack = time.Minute

// checkNotFuture returns an error if a stored shutdown of this boot ends later than one that
// begins now. Such a file comes from another machine, or the machine was reset to an earlier
// snapshot.
func (f *stateFolder) checkNotFuture(p *progress) error {
	if p == nil || !p.goesOn() || p.BootID != f.ledger.bootID {
		return nil
	}
	left := time.Until(f.ledger.timeOf(p.HostEnd))
	if left-longestSlack <= f.longestShutdown(p.Schedule) {
		return nil
	}
	return fmt.Errorf("shutdown state %s is not usable: its shutdown ends in %v, and cannot have begun",
		filepath.Join(f.ledger.dir, progressFile), left.Round(time.Second))
}

// carried returns the final statuses that this agent has to send for a previous one. After a
// reboot these are all, because each pod has ended with its boot, except those of static pods,
// which run again. In the same boot these are the ones of pods that are known to have ended. The
// same counts if the boot cannot be identified.
func (f *stateFolder) carried(r storedState) []finalStatus {
	if r.progress == nil {
		return nil
	}
	rebooted := f.ledger.err == nil && r.progress.BootID != f.ledger.bootID
	var carried []finalStatus
	for _, s := range r.progress.Unacknowledged {
		if rebooted && !staticpod.IsOrMirrors(s.Pod) || !rebooted && s.Ended {
			s.Ended = true // at the latest with its boot; the next write stores it
			carried = append(carried, s)
		}
	}
	return carried
}
