//go:build !unix || solaris || illumos || aix

package command

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// lockState only opens the lock file: on this system neither it nor an agent can lock a
// folder. If there is no lock file, the error wraps fs.ErrNotExist.
func lockState(dir string) (io.Closer, error) {
	lock, err := os.Open(filepath.Join(dir, lockFile))
	if err != nil {
		return nil, fmt.Errorf("failed to look for an agent: %w", err)
	}
	return lock, nil
}
