//go:build !unix || solaris || illumos || aix

package command

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// lockState cannot lock a folder on this system; nor can an agent.
func lockState(dir string) (io.Closer, error) {
	lock, err := os.Open(filepath.Join(dir, lockFile))
	if err != nil {
		return nil, fmt.Errorf("failed to look for an agent: %w", err)
	}
	return lock, nil
}
