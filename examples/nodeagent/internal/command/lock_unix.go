//go:build unix && !solaris && !illumos && !aix

package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// lockState locks a state folder as package shutdown does. It fails if an agent uses the
// folder. If there is no lock file, the error wraps fs.ErrNotExist.
func lockState(dir string) (io.Closer, error) {
	lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("failed to look for an agent: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		err = fmt.Errorf("an agent uses %s, stop it first: %w", dir, err)
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}
