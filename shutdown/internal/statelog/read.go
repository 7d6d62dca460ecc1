package statelog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
)

// Contents is what was read from the log and from the kubelet's file.
type Contents struct {
	Entries  node.Entries // the newest entries of the log
	SameBoot bool         // an agent of this boot wrote the log, so that its shutdown may be resumed
	Times    Times        // the times in the kubelet's file
	Errs     []error      // each names a file, and says which part of it is not used and why
}

// Times are the start and the end of the last shutdown by the wall clock, as the kubelet stores them
// for its metrics. Zero: not yet.
type Times struct {
	StartTime time.Time `json:"startTime"`
	EndTime   time.Time `json:"endTime"`
}

// Read returns what was in the files when [Log.Lock] locked the folder, before this agent wrote anything. Before Lock has
// ended, it returns what is in the files now. After Lock has failed, it returns nothing. Read waits for the disk at most until
// ctx ends, which is the only error. After an error do not write the log: it may have entries that are still needed.
func (l *Log) Read(ctx context.Context) (Contents, error) {
	if l.opts.Dir == "" {
		return Contents{}, nil
	}
	found := l.contents
	select {
	case <-l.lockSettled: // l.contents is known, or will be soon
	default:
		found = call.Start(ctx, &l.otherCalls, "the reading of "+l.path(logFile), func(context.Context) (Contents, error) {
			return l.load(), nil
		})
	}
	c, err := found.Wait(ctx)
	if err != nil {
		return Contents{}, fmt.Errorf("failed to use the state folder, nothing is stored: failed to read %s: %w", l.path(logFile), err)
	}
	return c, nil
}

// ReadFile reads the log in a folder without locking the folder, for programs other than the agent. If the
// error is not nil, Contents has the usable part of the log.
func ReadFile(dir string) (Contents, error) {
	l := New(Options{Dir: dir})
	l.bootID, l.bootErr = "", nil // so that load reads the log of any boot, even if this boot's ID is not known
	c := l.load()
	return c, errors.Join(c.Errs...)
}

// notUsable returns err with the name of the file.
func notUsable(path string, err error) error {
	return fmt.Errorf("shutdown state %s is not usable: %w", path, err)
}

// load reads the log and the kubelet's file. If the boot ID is not known (l.bootErr), it ignores the log's entries.
func (l *Log) load() (c Contents) {
	path := l.path(logFile)
	text, err := l.read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist): // nothing has been stored yet
	case err != nil:
		c.Errs = append(c.Errs, notUsable(path, err))
	case l.bootErr == nil:
		c = parse(text, l.bootID, l.SinceBoot(time.Now()))
		for i, err := range c.Errs {
			c.Errs[i] = notUsable(path, err)
		}
	}
	if l.opts.Times {
		if c.Times, err = l.readTimes(l.path(timesFile)); err != nil {
			c.Errs = append(c.Errs, notUsable(l.path(timesFile), err))
		}
	}
	// Warm up encoding/json here: its first use of these types takes 2 ms, which would delay a drain.
	_, _ = json.Marshal(line{Shutdown: &node.Shutdown{}, Pod: &node.Pod{}, Object: &v1.Pod{}})
	return c
}

// parse returns the contents of a log. It leaves out damaged entries, and names them in c.Errs. bootID is the ID of this
// boot, and now is the current time, counted from the boot.
func parse(text []byte, bootID string, now time.Time) (c Contents) {
	first, text, _ := bytes.Cut(text, []byte("\n"))
	var h header
	if err := json.Unmarshal(first, &h); err != nil {
		return Contents{Errs: []error{fmt.Errorf("invalid first line: %w", err)}}
	}
	if h.Version != version {
		return Contents{Errs: []error{fmt.Errorf("version %d is not known, only %d", h.Version, version)}}
	}
	c.SameBoot = bootID != "" && h.BootID == bootID
	if !c.SameBoot {
		now = maxTime() // the times of another boot cannot be compared with now
	}
	var read newestEntries
	if err := read.addLines(text); err != nil {
		c.Errs = append(c.Errs, err)
	}
	if s := read.Shutdown; s != nil {
		if err := checkShutdown(s, now); err != nil {
			c.Errs = append(c.Errs, fmt.Errorf("its shutdown is damaged: %w", err))
		} else {
			c.Entries.Shutdown = s
		}
	}
	for _, p := range read.Pods {
		if err := checkPod(p, now); err != nil {
			c.Errs = append(c.Errs, fmt.Errorf("its pod %s/%s is damaged: %w", p.Namespace, p.Name, err))
		} else {
			c.Entries.Pods = append(c.Entries.Pods, p)
		}
	}
	return c
}

// addLines decodes the lines of a log from the second one on. It stops at a damaged line, and the error names that line. A
// damaged or incomplete last line is no error: the agent died while it wrote.
func (all *newestEntries) addLines(text []byte) error {
	for number := 2; len(text) > 0; number++ {
		next, rest, isWhole := bytes.Cut(text, []byte("\n"))
		if !isWhole {
			return nil
		}
		if err := all.addLine(next); err != nil {
			if isLast := len(rest) == 0; isLast {
				return nil
			}
			return fmt.Errorf("line %d and all that follow are ignored: %w", number, err)
		}
		text = rest
	}
	return nil
}

// addLine decodes a line, and replaces what earlier lines say about its shutdown or pod. A pod keeps the Object of its
// previous line if the new line has none: Append writes an Object only if it has changed.
func (all *newestEntries) addLine(text []byte) error {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return err
	}
	switch {
	case l.Shutdown != nil:
		all.Shutdown = l.Shutdown
	case l.Pod != nil:
		l.Pod.Object = l.Object
		before := all.pod(l.Pod.Key)
		if l.Object == nil && before != nil {
			l.Pod.Object = before.Object
		}
		all.put(l.Pod)
	default:
		return errors.New("it is neither a shutdown nor a pod")
	}
	return nil
}

// read returns the content of a file that only this user or root can have written. If it does not exist, the
// error wraps [fs.ErrNotExist].
func (l *Log) read(path string) (text []byte, err error) {
	if err := l.injectedFault("read", path); err != nil {
		return nil, err
	}
	f, err := openFile(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err == nil {
		err = errors.Join(checkOwner(info), checkMode(info))
	}
	if err == nil && info.Size() > maxSize {
		err = fmt.Errorf("it has %d bytes, more than %d", info.Size(), maxSize)
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, maxSize))
}

// readTimes reads the kubelet's file. The times are zero if it does not exist.
func (l *Log) readTimes(path string) (Times, error) {
	text, err := l.read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Times{}, nil
	}
	var stored struct{ StartTime, EndTime *time.Time }
	if err == nil {
		err = json.Unmarshal(text, &stored)
	}
	if err == nil && (stored.StartTime == nil || stored.EndTime == nil) {
		err = errors.New("it needs both startTime and endTime")
	}
	if err != nil {
		return Times{}, err
	}
	return Times{StartTime: *stored.StartTime, EndTime: *stored.EndTime}, nil
}

// checkOwner returns an error if a file is not regular, or belongs to neither this user nor root.
func checkOwner(info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("it is not a regular file but %v", info.Mode().Type())
	case isForeign(info):
		return errors.New("it belongs to neither this user nor root")
	default:
		return nil
	}
}

// checkMode returns an error if others may write to the file.
func checkMode(info fs.FileInfo) error {
	if mode := info.Mode().Perm(); mode&othersMayWrite != 0 {
		return fmt.Errorf("others may write to it: its mode is %v", mode)
	}
	return nil
}
