//go:build go1.25

package shutdown_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/atomicfile"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// A state file that is not usable does no harm and gives no report. It is named in the report of the
// next shutdown, which replaces it.
func TestUnusableState(t *testing.T) {
	for name, content := range map[string]string{"torn": `{"version":1,"boo`, "empty": "", "foreign": `{"version":7}`} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range []string{timesFile, progressFile} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644))
			}
			inBubble(t, twoPods(), func(t *testing.T, n *node) {
				n.opts.StateDir = dir
				boot := &boot{id: "one", began: time.Now()}
				n.runOnBoot(boot)
				require.True(t, n.m.Admit(nil).Admit)
				_, ok := n.m.LastReport()
				require.False(t, ok)
				n.announce()
				n.advance(time.Minute)
				named := n.lastReport().Errors
				require.Len(t, named, 2)
				require.Contains(t, strings.Join(named, "\n"), timesFile)
				require.Contains(t, strings.Join(named, "\n"), progressFile)
				n.end()
				n.host.SetPending(nil)
				n.runOnBoot(boot)
				require.Len(t, n.lastReport().Pods, 2)
			})
		})
	}
}

// A state folder that cannot be written to does not change the drain. Its report names the
// error.
func TestUnwritableState(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.Mkdir(dir, 0o755))
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.opts.StateDir = dir
		n.runOnBoot(&boot{id: "one", began: time.Now()})
		require.NoError(t, os.RemoveAll(dir))
		n.announce()
		n.advance(time.Minute)
		require.Len(t, n.killer.Kills(), 2)
		report := n.lastReport()
		require.NotEmpty(t, report.Errors)
		require.Contains(t, report.Errors[0], "failed to store the shutdown state")
		require.Zero(t, n.host.Held())
	})
}

// If the boot has no ID, only the kubelet's file is written.
func TestUnknownBoot(t *testing.T) {
	dir := t.TempDir()
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.opts.StateDir = dir
		n.runOnBoot(&boot{err: errors.ErrUnsupported})
		n.announce()
		n.advance(time.Minute)
		require.Contains(t, n.lastReport().Errors[0], errors.ErrUnsupported.Error())
	})
	require.FileExists(t, filepath.Join(dir, timesFile))
	require.NoFileExists(t, filepath.Join(dir, progressFile))
}

// The kubelet's file has its two fields. The end is the zero time while a shutdown goes on.
func TestStoredTimes(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.runOnBoot(one)
		began := time.Now()
		n.announce()
		n.advance(time.Second)
		require.Equal(t, map[string]time.Time{"startTime": began.UTC(), "endTime": {}}, storedTimes(t, n.opts.StateDir))
		n.advance(time.Minute)
		require.Equal(t, map[string]time.Time{"startTime": began.UTC(), "endTime": began.Add(30 * time.Second).UTC()}, storedTimes(t, n.opts.StateDir))
	})
}

func storedTimes(t *testing.T, dir string) map[string]time.Time {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, timesFile))
	require.NoError(t, err)
	var stored map[string]time.Time
	require.NoError(t, json.Unmarshal(data, &stored))
	for key, at := range stored {
		stored[key] = at.UTC()
	}
	return stored
}

// Run returns the error of its last write of the state files.
func TestLastWriteFails(t *testing.T) {
	errFull := errors.New("no space left on device")
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, twoPods())
		n.opts.StateDir = dir
		var full atomic.Bool
		m, err := shutdown.NewManagerWith(n.opts, (&boot{id: "one", began: time.Now()}).sinceBoot, func(_ string, encode func(io.Writer) error) error {
			if full.Load() {
				return errFull
			}
			return encode(io.Discard)
		})
		require.NoError(t, err)
		n.start(m)
		<-m.Ready()
		n.announce()
		n.advance(time.Minute)
		require.False(t, m.Admit(nil).Admit)
		full.Store(true)
		n.stop()
		require.ErrorIs(t, <-n.ended, errFull)
	})
}

// A write that has failed is made again, also if there is nothing new to write.
func TestFailedWriteIsMadeAgain(t *testing.T) {
	inBubbleWithState(t, nil, func(t *testing.T, n *node, one *boot) {
		var fullUntil time.Time
		m, err := shutdown.NewManagerWith(n.opts, one.sinceBoot, func(path string, encode func(io.Writer) error) error {
			var data bytes.Buffer
			if err := encode(&data); err != nil || time.Now().Before(fullUntil) {
				return cmp.Or(err, error(syscall.ENOSPC))
			}
			return atomicfile.Write(path, data.Bytes())
		})
		require.NoError(t, err)
		n.start(m)
		n.announce()
		n.advance(time.Second)
		fullUntil = time.Now().Add(3 * time.Second)
		n.host.Cancel()
		n.advance(4 * time.Second)
		stored, found, err := shutdown.StoredReport(n.opts.StateDir)
		require.NoError(t, err)
		require.True(t, found)
		require.True(t, stored.Cancelled)
	})
}

// A static pod whose final status was acknowledged is admitted also while the disk is full.
func TestStaticPodOnAFullDisk(t *testing.T) {
	static := staticPod()
	inBubbleWithState(t, list(static), func(t *testing.T, n *node, one *boot) {
		n.opts.Reporter = &cluster{}
		m, err := shutdown.NewManagerWith(n.opts, one.sinceBoot, func(string, func(io.Writer) error) error { return syscall.ENOSPC })
		require.NoError(t, err)
		n.start(m)
		n.announce()
		n.advance(time.Minute)
		n.host.Cancel()
		n.advance(2 * time.Second)
		require.True(t, n.m.Admit(static).Admit)
	})
}

// The report of a dismissed shutdown that another agent goes on with has what fails since, in memory as on
// disk.
func TestADismissedShutdownThatIsTakenUpReportsAFailingDisk(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.opts.Reporter = &cluster{}
		n.runOnBoot(one)
		pending := shutdown.Event{Origin: "host", Deadline: time.Now().Add(time.Hour)}
		n.host.Announce(pending)
		n.advance(time.Second)
		require.NoError(t, n.m.Trigger(shutdown.Event{Cancelled: true}))
		n.advance(time.Second)
		n.crash()

		n.host.SetPending(&pending)
		full := time.Now().Add(3 * time.Second)
		m, err := shutdown.NewManagerWith(n.opts, one.sinceBoot, func(path string, encode func(io.Writer) error) error {
			if time.Now().Before(full) {
				return syscall.ENOSPC
			}
			return atomicfile.Replace(path, encode)
		})
		require.NoError(t, err)
		n.start(m)
		n.advance(time.Minute)
		stored, found, err := shutdown.StoredReport(n.opts.StateDir)
		require.NoError(t, err)
		require.True(t, found)
		require.Len(t, stored.Errors, 1)
		require.Equal(t, stored.Errors, n.lastReport().Errors)
	})
}

// Of what is written between the signal and the release two writes, one after the other, are waited
// for, as by the kubelet: at the begin and at the end. The others go on beside the pods.
func TestTwoWritesAreWaitedFor(t *testing.T) {
	for _, takes := range []time.Duration{0, 5 * time.Second} {
		inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
			n.killer.Default = shutdowntest.Behaviour{Takes: takes}
			m, err := shutdown.NewManagerWith(n.opts, one.sinceBoot, func(_ string, encode func(io.Writer) error) error {
				<-time.After(50 * time.Millisecond) // the disk
				return encode(io.Discard)
			})
			require.NoError(t, err)
			n.start(m)
			n.advance(time.Second)
			began := time.Now()
			n.announce()
			n.advance(time.Minute)
			require.InDelta(t, 2*takes+100*time.Millisecond, n.releasedAfter(began), float64(20*time.Millisecond))
		})
	}
}

// fileContains reports whether a file exists and contains a text.
func fileContains(path, text string) bool {
	data, err := os.ReadFile(path)
	return err == nil && strings.Contains(string(data), text)
}
