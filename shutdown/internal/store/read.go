package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

// Contents is what the state files contain.
type Contents struct {
	Record *Record // nil: none, or it is not usable
	// Debts are those of the record. Of one that is not usable they are those that can be read.
	Debts []Debt
	// Times are those of the report of the record, which is written before the kubelet's file;
	// those of the kubelet's file if there is no usable record.
	Times Times
	Errs  []error // each names a file and says why it is not usable
}

// Times are the start and the end of the last shutdown by the wall clock, as the kubelet stores
// them for its metrics. The zero time means not yet.
type Times struct {
	StartTime time.Time `json:"startTime"`
	EndTime   time.Time `json:"endTime"`
}

// recordContent is what the file of a record contains.
type recordContent struct {
	record *Record
	debts  []Debt
}

// Read reads the files, each in a goroutine of calls, and waits for them until a time at most. A
// file that is not there by then, or when ctx ends, is an error in Errs. The folder need not be
// locked.
func (s *Store) Read(ctx context.Context, calls *call.Group, until time.Time) Contents {
	var c Contents
	if s.folder.dir == "" {
		return c
	}
	recordPath, timesPath := s.path(RecordFile), s.path(TimesFile)
	record := call.Start(ctx, calls, "the reading of "+recordPath, func(context.Context) (recordContent, error) { return readRecord(s.read, recordPath) })
	if s.times != nil {
		times := call.Start(ctx, calls, "the reading of "+timesPath, func(context.Context) (Times, error) { return readTimes(s.read, timesPath) })
		var err error
		c.Times, err = times.Await(ctx, until)
		c.addErr(timesPath, err)
	}
	content, err := record.Await(ctx, until)
	if err == nil && content.record != nil {
		err = s.checkPast(content.record)
	}
	c.addErr(recordPath, err)
	c.Debts = content.debts
	if content.record != nil && err == nil {
		c.Record = content.record
		c.Times = Times{StartTime: c.Record.Report.Started, EndTime: c.Record.Report.Ended}
	}
	return c
}

func (c *Contents) addErr(path string, err error) {
	if err != nil {
		c.Errs = append(c.Errs, notUsable(path, err))
	}
}

func notUsable(path string, err error) error {
	return fmt.Errorf("shutdown state %s is not usable: %w", path, err)
}

// checkPast returns an error for a record of this boot that begins in the future. It comes from
// another machine, or the machine was reset to an earlier snapshot.
func (s *Store) checkPast(r *Record) error {
	if until := r.T0 - s.SinceBoot(time.Now()); r.BootID == s.boot.id && until > 0 {
		return fmt.Errorf("its shutdown begins in %v", until)
	}
	return nil
}

// ReadRecord reads the record in a folder, for a program that shows it and is not the agent. It is
// nil if there is none. A file that is not usable is an error that names it. ReadRecord does not
// lock the folder and writes nothing.
func ReadRecord(dir string) (*Record, error) {
	path := filepath.Join(dir, RecordFile)
	content, err := readRecord(readFile, path)
	if err != nil {
		return nil, notUsable(path, err)
	}
	return content.record, nil
}

// readRecord reads a record. The debts are there even if the record is not usable.
func readRecord(read func(path string) ([]byte, error), path string) (recordContent, error) {
	r := &Record{}
	data, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		// The first use of v1.Pod by encoding/json takes 2 ms, which a drain cannot spare.
		return recordContent{}, json.Unmarshal([]byte("{}"), r)
	}
	if err != nil {
		return recordContent{}, err
	}
	if err = json.Unmarshal(data, r); err == nil {
		if string(r.Timetable) == "null" {
			r.Timetable = nil
		}
		err = r.check()
	}
	if err != nil {
		return recordContent{debts: readableDebts(data)}, err
	}
	return recordContent{record: r, debts: r.Debts}, nil
}

// readableDebts returns the debts of a record that is not usable, such as a torn one.
func readableDebts(data []byte) (debts []Debt) {
	d := json.NewDecoder(bytes.NewReader(data))
	if !opens(d, '{') || !findField(d, "debts") || !opens(d, '[') {
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

// opens reports whether the next token begins an object or an array.
func opens(d *json.Decoder, delimiter json.Delim) bool {
	token, err := d.Token()
	return err == nil && token == delimiter
}

// findField skips the fields of an object before the one of a name. It returns false if there is
// none.
func findField(d *json.Decoder, name string) bool {
	var skipped json.RawMessage
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return false
		}
		if token == name {
			return true
		}
		if d.Decode(&skipped) != nil {
			return false
		}
	}
	return false
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
