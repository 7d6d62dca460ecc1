package apiserverprocess

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
)

// repository is the folder of the repository. It is that of this file, where the
// binary was built with full paths, else one above the working directory, which is
// the package's in a test.
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
		if root, ok := above(dir); ok {
			return root, nil
		}
	}
	return "", errors.Join(errors.New("no folder above the test has internal/apiserver/go.mod"), err)
}

// above is the nearest folder from dir upwards that has the server's module.
func above(dir string) (string, bool) {
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
