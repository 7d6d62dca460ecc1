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

// oldFile is the file of version 3. It is ignored.
const oldFile = "graceful_node_shutdown_progress"

// Contents is what was read from the log and from the kubelet's file.
type Contents struct {
	// Entries has the newest [node.Shutdown] and the newest [node.Pod] of each key.
	Entries []any
	// SameBoot says that an agent of this boot wrote them, so that its shutdown may be resumed.
	SameBoot bool
	// Unusable says that a part of the log, or all of it, could not be read. Errs says why.
	Unusable bool
	Times    Times   // of the kubelet's file
	Errs     []error // each names a file, and what of it is not used and why
}

// Times are the start and the end of the last shutdown by the wall clock, as the kubelet stores them
// for its metrics. Zero: not yet.
type Times struct {
	StartTime time.Time `json:"startTime"`
	EndTime   time.Time `json:"endTime"`
}

// Read returns what was in the files when [Log.Lock] locked the folder, before this agent wrote anything. If
// it was not locked yet, Read returns what is in them now. It waits for the disk at most until ctx ends, which
// is the only error: then the log must not be written, because it may have entries that are still needed.
func (l *Log) Read(ctx context.Context) (Contents, error) {
	if l.opts.Dir == "" {
		return Contents{}, nil
	}
	found := l.contents
	select {
	case <-l.lockSettled:
	default:
		found = call.Start(ctx, &l.otherCalls, "the reading of "+l.path(LogFile), func(context.Context) (Contents, error) {
			c, _ := l.load()
			return c, nil
		})
	}
	c, err := found.Wait(ctx)
	if err != nil {
		return Contents{}, fmt.Errorf("failed to use the state folder, nothing is stored: failed to read %s: %w", l.path(LogFile), err)
	}
	return c, nil
}

// ReadFile reads the log in a folder without locking it, for programs other than the agent. If the
// error is not nil, Contents has the usable part.
func ReadFile(dir string) (Contents, error) {
	l := New(Options{Dir: dir})
	l.id, l.err = "", nil // read the log of any boot
	c, _ := l.load()
	return c, errors.Join(c.Errs...)
}

// notUsable returns err with the name of the file.
func notUsable(path string, err error) error {
	return fmt.Errorf("shutdown state %s is not usable: %w", path, err)
}

// load reads the log and the kubelet's file. It returns what they have, and the log's entries in the form in which they
// are written again when the log is replaced. If the boot ID is not known (l.err), it ignores the entries.
func (l *Log) load() (Contents, newestEntries) {
	var c Contents
	var newest newestEntries
	path := l.path(LogFile)
	text, err := l.read(path)
	if err == nil && l.err == nil {
		c, newest = parse(text, l.id, l.Since(time.Now()))
		for i, err := range c.Errs {
			c.Errs[i] = notUsable(path, err)
		}
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Unusable, c.Errs = true, append(c.Errs, notUsable(path, err))
	}
	if _, err := os.Lstat(l.path(oldFile)); err == nil {
		c.Errs = append(c.Errs, fmt.Errorf("shutdown state %s is ignored: it is of an earlier version, and can be removed", l.path(oldFile)))
	}
	if l.opts.Times {
		if c.Times, err = l.readTimes(l.path(TimesFile)); err != nil {
			c.Errs = append(c.Errs, notUsable(l.path(TimesFile), err))
		}
	}
	// Warm up encoding/json here: its first use of these types takes 2 ms, which would delay a drain.
	for _, value := range []any{node.Shutdown{}, node.Pod{}, object{}} {
		_, _ = json.Marshal(value)
	}
	return c, newest
}

// parse returns the contents of a log and its newest entries. It leaves out damaged entries, and names them in
// c.Errs. An incomplete last line is no error: the agent died while it wrote. bootID and now are the ID of this
// boot and the time since it began.
func parse(text []byte, bootID string, now time.Time) (c Contents, newest newestEntries) {
	first, text, _ := bytes.Cut(text, []byte("\n"))
	var h header
	if err := json.Unmarshal(first, &h); err != nil {
		err = fmt.Errorf("invalid first line: %w", err)
		return Contents{Unusable: true, Errs: []error{err}}, newest
	}
	if h.Version != version {
		return Contents{Unusable: true, Errs: []error{fmt.Errorf("version %d is not known, only %d", h.Version, version)}}, newest
	}
	c.SameBoot = bootID != "" && h.BootID == bootID
	if !c.SameBoot {
		now = maxTime() // times of another boot may be later than this boot's time
	}
	fail := func(err error) { c.Unusable, c.Errs = true, append(c.Errs, err) }
	var read entities
	for number := 2; len(text) > 0; number++ {
		next, rest, isWhole := bytes.Cut(text, []byte("\n"))
		if !isWhole {
			break
		}
		if err := read.addLine(next); err != nil {
			if len(rest) > 0 {
				fail(fmt.Errorf("line %d and all that follow are ignored: %w", number, err))
			}
			break
		}
		text = rest
	}
	if s := read.shutdown; s != nil {
		if err := checkShutdown(s, now); err != nil {
			fail(fmt.Errorf("its shutdown is damaged: %w", err))
		} else {
			c.Entries = append(c.Entries, *s)
		}
	}
	for _, key := range read.keys {
		p := read.pods[key]
		if err := checkPod(p, now); err != nil {
			fail(fmt.Errorf("its pod %s/%s is damaged: %w", p.Namespace, p.Name, err))
		} else {
			c.Entries = append(c.Entries, *p)
		}
	}
	_, _ = newest.update(c.Entries) // no error: what was decoded can be encoded
	return c, newest
}

// entities are the newest entities of a log.
type entities struct {
	shutdown *node.Shutdown
	pods     map[node.Key]*node.Pod
	keys     []node.Key // of pods, in the order of their first lines
}

// addLine decodes a line and replaces the entity that it is about. A pod's line has no Object if that has not
// changed since the line before.
func (e *entities) addLine(text []byte) error {
	var l line[*node.Shutdown, *node.Pod, *v1.Pod]
	if err := json.Unmarshal(text, &l); err != nil {
		return err
	}
	switch {
	case l.Shutdown != nil:
		e.shutdown = l.Shutdown
	case l.Pod != nil:
		before := e.pods[l.Pod.Key]
		switch {
		case l.Object != nil:
			l.Pod.Object = l.Object
		case before != nil:
			l.Pod.Object = before.Object
		}
		if before == nil {
			e.keys = append(e.keys, l.Pod.Key)
		}
		if e.pods == nil {
			e.pods = map[node.Key]*node.Pod{}
		}
		e.pods[l.Pod.Key] = l.Pod
	default:
		return errors.New("it is neither a shutdown nor a pod")
	}
	return nil
}

// read returns the content of a file that only this user or root can have written. If it does not exist, the
// error wraps [fs.ErrNotExist].
func (l *Log) read(path string) (text []byte, err error) {
	if err := l.before("read", path); err != nil {
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
	if err == nil && info.Size() > MaxSize {
		err = fmt.Errorf("it has %d bytes, more than %d", info.Size(), MaxSize)
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, MaxSize))
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
