package shutdown

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/statefile"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

const (
	// timesFile is the kubelet's own file, under its name and with its two fields.
	timesFile = "graceful_node_shutdown_state"
	// progressFile is ours, beside it.
	progressFile = "graceful_node_shutdown_progress"
	// progressVersion is the form of progress; another one is not read.
	progressVersion = 2
)

// times is when the last shutdown began and ended by the wall clock, as the
// kubelet stores it for its metrics; a zero time means not yet.
type times struct {
	StartTime time.Time `json:"startTime"`
	EndTime   time.Time `json:"endTime"`
}

// readTimes reads the kubelet's file. Without one the times are zero. A file that
// cannot be read, is torn or is something else gives zero times and an error that
// names it; the next write replaces it.
func readTimes(dir string) (times, error) {
	var stored struct{ StartTime, EndTime *time.Time }
	found, err := readState(filepath.Join(dir, timesFile), &stored, func() error {
		if stored.StartTime == nil || stored.EndTime == nil {
			return errors.New("it needs both startTime and endTime")
		}
		return nil
	})
	if !found || err != nil {
		return times{}, err
	}
	return times{StartTime: *stored.StartTime, EndTime: *stored.EndTime}, nil
}

// writeTimes replaces the kubelet's file.
func writeTimes(write writeFile, dir string, t times) error {
	return writeState(write, filepath.Join(dir, timesFile), func(w io.Writer) error {
		text, err := json.Marshal(t)
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	})
}

// progress is how far a shutdown has come, for an agent that is restarted within
// it, and what became of it, for one that starts after it.
type progress struct {
	// Version is filled in by writeProgress.
	Version int `json:"version"`
	// BootID is that of the boot that the shutdown ends; the two spans below mean
	// nothing in another one. Never empty.
	BootID string `json:"bootID"`
	// Start and HostEnd are when the first bucket was to start at the latest, and
	// when the host is let go, on CLOCK_MONOTONIC, in nanoseconds since the boot.
	Start   time.Duration `json:"startMonotonicNanoseconds"`
	HostEnd time.Duration `json:"hostEndMonotonicNanoseconds"`
	// Late tells whether the first bucket was to start no earlier than Start.
	Late bool `json:"late,omitempty"`
	// Schedule is the schedule as fitted, ascending by priority.
	Schedule plan.Schedule `json:"schedule"`
	// Done is how many buckets, from the first, need not be gone through again.
	Done int `json:"done"`
	// Refused is how many admissions were refused so far, over all shutdowns.
	Refused uint64 `json:"refused,omitempty"`
	// Report has the kind and, by the wall clock, the start from the first write
	// on; the rest when the shutdown has ended.
	Report Report `json:"report"`
	// Unacknowledged are the final statuses that the API server has not acknowledged.
	Unacknowledged []finalStatus `json:"unacknowledged,omitempty"`
}

// finalStatus is a final status that the API server has not acknowledged.
type finalStatus struct {
	// Pod has what [StatusFlusher] needs of it, and is never nil.
	Pod *v1.Pod `json:"pod"`
	// Ended tells whether the pod is known to have ended. Else it has with its boot.
	Ended bool `json:"ended"`
}

// mostUnacknowledged is how many of them are stored.
const mostUnacknowledged = 1000

// ended tells whether the shutdown is over, so that there is nothing to resume.
func (p *progress) ended() bool { return !p.Report.Ended.IsZero() }

// goesOn tells whether it has neither ended nor been called off; of one that was called off
// pods may still end.
func (p *progress) goesOn() bool { return !p.ended() && !p.Report.Cancelled }

// mayBe tells whether it may be a shutdown of a kind.
func (p *progress) mayBe(kind Kind) bool {
	return p.Report.Kind == KindUnknown || kind == KindUnknown || p.Report.Kind == kind
}

// check finds what a file of progress cannot be resumed with.
func (p *progress) check() error {
	byPriority := func(a, b plan.Bucket) int { return cmp.Compare(a.Priority, b.Priority) }
	switch {
	case p.Version != progressVersion:
		return fmt.Errorf("version %d is not known, only %d", p.Version, progressVersion)
	case p.BootID == "":
		return errors.New("bootID is empty")
	case p.Start < 0 || p.HostEnd < 0:
		return fmt.Errorf("startMonotonicNanoseconds %d and hostEndMonotonicNanoseconds %d must not be negative", p.Start, p.HostEnd)
	case p.Done < 0 || p.Done > len(p.Schedule):
		return fmt.Errorf("done is %d, the schedule has %d buckets", p.Done, len(p.Schedule))
	case !slices.IsSortedFunc(p.Schedule, byPriority):
		return errors.New("schedule is not ascending by priority")
	case len(p.Schedule) == 0 && !p.ended():
		return errors.New("schedule is empty")
	case slices.ContainsFunc(p.Unacknowledged, func(s finalStatus) bool { return s.Pod == nil }):
		return errors.New("unacknowledged has an entry without a pod")
	default:
		return nil
	}
}

// readProgress reads our file; nil means that there is none. A file that cannot
// be read, is torn or is something else gives nil and an error that names it; the
// next write replaces it.
func readProgress(dir string) (*progress, error) {
	p := &progress{}
	found, err := readState(filepath.Join(dir, progressFile), p, p.check)
	if !found || err != nil {
		return nil, err
	}
	return p, nil
}

// writeProgress replaces our file.
func writeProgress(write writeFile, dir string, p progress) error {
	p.Version = progressVersion
	return writeState(write, filepath.Join(dir, progressFile), p.encode)
}

// removeProgress removes our file, if there is one.
func removeProgress(dir string) error {
	err := os.Remove(filepath.Join(dir, progressFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("failed to remove a shutdown state that is no longer true: %w", err)
	}
	return nil
}

// readState decodes a file into state and has it checked; false: there is none.
func readState(path string, state any, check func() error) (found bool, err error) {
	data, err := statefile.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("failed to read the shutdown state: %w", err)
	}
	if err = json.Unmarshal(data, state); err == nil {
		err = check()
	}
	if err != nil {
		return false, fmt.Errorf("shutdown state %s is not usable: %w", path, err)
	}
	return true, nil
}

// writeFile makes what encode writes the content of a file: atomicfile.WriteFrom, unless a test
// has another disk.
type writeFile func(path string, encode func(io.Writer) error) error

// writeState stores what encode writes under path.
func writeState(write writeFile, path string, encode func(io.Writer) error) error {
	if err := write(path, encode); err != nil {
		return fmt.Errorf("failed to store the shutdown state: %w", err)
	}
	return nil
}
