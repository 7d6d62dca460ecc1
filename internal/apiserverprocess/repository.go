package apiserverprocess

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
)

// repository returns the root folder of the repository, which has the API server's source. It searches upwards from
// this source file, whose path is known unless the binary was built with -trimpath, and then from the working
// directory.
func repository() (string, error) {
	var from []string
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		from = append(from, filepath.Dir(file))
	}
	working, err := os.Getwd()
	if err == nil {
		from = append(from, working)
	}
	for _, dir := range from {
		if root, ok := moduleAbove(dir); ok {
			return root, nil
		}
	}
	return "", errors.Join(errors.New("no folder above the test has internal/apiserver/go.mod"), err)
}

// moduleAbove returns the nearest folder, dir or one above it, that contains the API server's module.
func moduleAbove(dir string) (root string, found bool) {
	for {
		if _, err := os.Stat(filepath.Join(dir, "internal", "apiserver", "go.mod")); err == nil {
			return dir, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}
