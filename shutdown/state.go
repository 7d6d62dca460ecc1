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
	// timesFile is the kubelet's file, with the kubelet's name and fields.
	timesFile = "graceful_node_shutdown_state"
	// progressFile is the file of this package, in the same folder.
	progressFile = "graceful_node_shutdown_progress"
	// progressVersion is the version of the format of progress. No other is read.
	progressVersion = 2
)

// times holds the start and the end of the last shutdown by the wall clock, as the kubelet stores
// them for its metrics. The zero time means not yet.
type times struct {
	StartTime time.Time `json:"startTime"`
	EndTime   time.Time `json:"endTime"`
}

// readTimes reads the kubelet's file. Without a file it returns zero times. If the file is not
// usable it returns zero times and an error that names the file; the next write replaces it.
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

// progress is the content of progressFile: how far a shutdown has come, and its report after its
// end.
type progress struct {
	// Version is set by writeProgress.
	Version int `json:"version"`
	// BootID identifies the boot that the shutdown ends. Start and HostEnd mean nothing in
	// another boot. It is never empty.
	BootID string `json:"bootID"`
	// Start is when the first bucket starts at the latest, HostEnd when the wait for pods ends.
	// Both are CLOCK_MONOTONIC, in nanoseconds since the boot.
	Start   time.Duration `json:"startMonotonicNanoseconds"`
	HostEnd time.Duration `json:"hostEndMonotonicNanoseconds"`
	// Late means that the first bucket does not start before Start.
	Late bool `json:"late,omitempty"`
	// Schedule is the fitted schedule, ascending by priority.
	Schedule plan.Schedule `json:"schedule"`
	// Done is the number of finished buckets, from the lowest.
	Done int `json:"done"`
	// Refused is the number of refused admissions of all agents so far.
	Refused uint64 `json:"refused,omitempty"`
	// Report has the kind and the start from the first write on, and the rest after the end of
	// the shutdown.
	Report Report `json:"report"`
	// Unacknowledged lists the final statuses that the API server has not acknowledged.
	Unacknowledged []finalStatus `json:"unacknowledged,omitempty"`
}

// finalStatus is a final status that the API server has not acknowledged.
type finalStatus struct {
	// Pod has what [StatusFlusher] needs. It is never nil.
	Pod *v1.Pod `json:"pod"`
	// Ended means that the pod is known to have ended. Otherwise it has ended with its boot.
	Ended bool `json:"ended"`
}

// mostUnacknowledged is the largest number of final statuses that are stored.
const mostUnacknowledged = 1000

// ended reports whether the shutdown has ended, so that nothing is left to resume.
func (p *progress) ended() bool { return !p.Report.Ended.IsZero() }

// goesOn reports whether the shutdown has neither ended nor been cancelled. Pods of a cancelled
// one may still be ending.
func (p *progress) goesOn() bool { return !p.ended() && !p.Report.Cancelled }

// mayBe reports whether this may be a shutdown of a kind.
func (p *progress) mayBe(kind Kind) bool {
	return p.Report.Kind == KindUnknown || kind == KindUnknown || p.Report.Kind == kind
}

// check returns the reason why p cannot be resumed, or nil.
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

// readProgress reads the progress file. Without a file it returns nil. If the file is not usable
// it returns nil and an error that names the file; the next write replaces it.
func readProgress(dir string) (*progress, error) {
	p := &progress{}
	found, err := readState(filepath.Join(dir, progressFile), p, p.check)
	if !found || err != nil {
		return nil, err
	}
	return p, nil
}

// writeProgress replaces the progress file.
func writeProgress(write writeFile, dir string, p progress) error {
	p.Version = progressVersion
	return writeState(write, filepath.Join(dir, progressFile), p.encode)
}

// removeProgress removes the progress file, if there is one.
func removeProgress(dir string) error {
	err := os.Remove(filepath.Join(dir, progressFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("failed to remove a shutdown state that is no longer true: %w", err)
	}
	return nil
}

// readState decodes a file into state and calls check. It returns false if there is no file.
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

// writeFile replaces a file by what encode writes. It is atomicfile.WriteFrom, or a failing disk
// of a test.
type writeFile func(path string, encode func(io.Writer) error) error

// writeState replaces the file at path by what encode writes.
func writeState(write writeFile, path string, encode func(io.Writer) error) error {
	if err := write(path, encode); err != nil {
		return fmt.Errorf("failed to store the shutdown state: %w", err)
	}
	return nil
}
