package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

// Contents is what the state files contain.
type Contents struct {
	Record *Record // nil: none, or it is not usable
	// Unusable means that there may be a record, which could not be read or is not usable.
	Unusable bool
	// Debts are those of the record. Of one that is not usable they are those that can be read.
	Debts []Debt
	Times Times   // of the kubelet's file, which may be older than the report of the record
	Errs  []error // each names a file and says why it is not usable
}

// Times are the start and the end of the last shutdown by the wall clock, as the kubelet stores
// them for its metrics. The zero time means not yet.
type Times struct {
	StartTime time.Time `json:"startTime"`
	EndTime   time.Time `json:"endTime"`
}

// Read reads the files, each in a goroutine of calls, and waits for them until a time at most. A
// file that is not there by then, or when ctx ends, is an error in Errs. The folder need not be
// locked.
func (s *Store) Read(ctx context.Context, calls *call.Group, until time.Time) Contents {
	var c Contents
	if s.opts.Dir == "" {
		return c
	}
	recordPath, timesPath := s.path(RecordFile), s.path(TimesFile)
	record := call.Start(ctx, calls, "the reading of "+recordPath, func(context.Context) (*Record, error) { return readRecord(s.opts.Read, recordPath) })
	if s.opts.Times {
		var err error
		times := call.Start(ctx, calls, "the reading of "+timesPath, func(context.Context) (Times, error) { return readTimes(s.opts.Read, timesPath) })
		if c.Times, err = times.Await(ctx, until); err != nil {
			c.Errs = append(c.Errs, notUsable(timesPath, err))
		}
	}
	r, err := record.Await(ctx, until)
	if r != nil {
		c.Debts = r.Debts
		// A record of this boot that begins in the future comes from another machine, or the machine
		// was reset to an earlier snapshot.
		if ahead := r.T0 - s.SinceBoot(time.Now()); err == nil && r.BootID == s.id && ahead > 0 {
			err = fmt.Errorf("its shutdown begins in %v", ahead)
		}
	}
	if err != nil {
		c.Unusable, c.Errs = true, append(c.Errs, notUsable(recordPath, err))
	} else {
		c.Record = r
	}
	return c
}

func notUsable(path string, err error) error {
	return fmt.Errorf("shutdown state %s is not usable: %w", path, err)
}

// ReadRecord reads the record in a folder, for a program that shows it and is not the agent. It is
// nil if there is none. A file that is not usable is an error that names it. ReadRecord does not
// lock the folder and writes nothing.
func ReadRecord(dir string) (*Record, error) {
	path := filepath.Join(dir, RecordFile)
	r, err := readRecord(readFile, path)
	if err != nil {
		return nil, notUsable(path, err)
	}
	return r, nil
}

// readRecord reads a record; nil: there is none. One that is not usable has its debts alone.
func readRecord(read func(path string) ([]byte, error), path string) (*Record, error) {
	r := &Record{}
	data, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		// The first use of v1.Pod by encoding/json takes 2 ms, which a drain cannot spare.
		return nil, json.Unmarshal([]byte("{}"), r)
	}
	if err != nil {
		return nil, err
	}
	if err = json.Unmarshal(data, r); err == nil {
		if string(r.Timetable) == "null" {
			r.Timetable = nil
		}
		err = r.check()
	}
	if err != nil {
		return &Record{Debts: readableDebts(data)}, err
	}
	return r, nil
}

// readableDebts returns the debts of a record that is not usable, such as a torn one.
func readableDebts(data []byte) (debts []Debt) {
	// The text is in no string, whose quotes are escaped, and no other field has this name.
	_, list, _ := bytes.Cut(data, []byte(`"debts":`))
	d := json.NewDecoder(bytes.NewReader(list))
	if first, _ := d.Token(); first != json.Delim('[') {
		return nil
	}
	var text json.RawMessage
	for d.Decode(&text) == nil {
		var debt Debt
		if json.Unmarshal(text, &debt) == nil && debt.check() == nil {
			debts = append(debts, debt)
		}
	}
	return debts
}

// readTimes reads the kubelet's file. Without a file the times are zero.
func readTimes(read func(path string) ([]byte, error), path string) (Times, error) {
	data, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Times{}, nil
	}
	if err != nil {
		return Times{}, err
	}
	var stored struct{ StartTime, EndTime *time.Time }
	if err := json.Unmarshal(data, &stored); err != nil {
		return Times{}, err
	}
	if stored.StartTime == nil || stored.EndTime == nil {
		return Times{}, errors.New("it needs both startTime and endTime")
	}
	return Times{StartTime: *stored.StartTime, EndTime: *stored.EndTime}, nil
}

// readFile returns the content of a state file. If there is no file the error wraps
// [fs.ErrNotExist].
func readFile(path string) (data []byte, err error) {
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
		err = fmt.Errorf("it has %d bytes, %d are the most", info.Size(), MaxSize)
	}
	if err != nil {
		return nil, err
	}
	text := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	_, err = text.ReadFrom(io.LimitReader(f, MaxSize)) // it may grow meanwhile; cut off it is no JSON
	return text.Bytes(), err
}

// checkOwner returns an error if a file is not regular or belongs to another user.
func checkOwner(info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("it is no regular file but %v", info.Mode().Type())
	case isForeign(info):
		return errors.New("it belongs to neither this user nor root")
	default:
		return nil
	}
}

// checkMode returns an error if users other than the owner may write.
func checkMode(info fs.FileInfo) error {
	if mode := info.Mode().Perm(); mode&othersMayWrite != 0 {
		return fmt.Errorf("it may be written to by others: its mode is %v", mode)
	}
	return nil
}
