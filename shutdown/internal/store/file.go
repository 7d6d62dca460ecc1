package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

const (
	// TimesFile is the name of the kubelet's file.
	TimesFile = "graceful_node_shutdown_state"
	// RecordFile is the name of the file with the record of a shutdown.
	RecordFile = "graceful_node_shutdown_progress"
	// MaxSize is the largest size, in bytes, of a file that is read. The record of 50,000 pods
	// takes 10 MB before they are killed, and 100 MB when the final status of each is owed.
	MaxSize = 256 << 20
)

// othersMayWrite are the mode bits that let users other than the owner write.
const othersMayWrite fs.FileMode = 0o022

// readFile returns the content of a state file. If there is no file the error wraps
// [fs.ErrNotExist].
func readFile(path string) (data []byte, err error) {
	f, err := openWithoutWaiting(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := checkFile(info); err != nil {
		return nil, err
	}
	text := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	_, err = text.ReadFrom(io.LimitReader(f, MaxSize)) // it may grow meanwhile; cut off it is no JSON
	return text.Bytes(), err
}

// checkFile returns an error if a file is not to be read.
func checkFile(info fs.FileInfo) error {
	if err := checkOwner(info); err != nil {
		return err
	}
	switch mode := info.Mode(); {
	case info.Size() > MaxSize:
		return fmt.Errorf("it has %d bytes, %d are the most", info.Size(), MaxSize)
	case mode.Perm()&othersMayWrite != 0 && hasOwners:
		return fmt.Errorf("it may be written to by others: its mode is %v", mode.Perm())
	default:
		return nil
	}
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
