package main

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// reachTimeout is how long the database may take to answer.
const reachTimeout = 30 * time.Second

// unreachableError says that a database does not answer, or answers with an error.
type unreachableError struct {
	db  string
	err error
}

func (e *unreachableError) Error() string {
	return fmt.Sprintf("The vulnerability database %s cannot be reached: %v.", e.db, e.err)
}

func (e *unreachableError) Unwrap() error { return e.err }

// reach checks that a database can be used. It returns an [*unreachableError] if a server cannot be
// reached, and another error if the URL or the folder is wrong.
func reach(ctx context.Context, db string) error {
	u, err := url.Parse(db)
	if err != nil {
		return fmt.Errorf("--db: %w", err)
	}
	switch u.Scheme {
	case "file":
		info, err := os.Stat(u.Path)
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is not a folder", u.Path)
		}
		if err == nil {
			err = checkFolder(u.Path)
		}
		if err != nil {
			return fmt.Errorf("--db %s: %w", db, err)
		}
		return nil
	case "http", "https":
		if err := checkAddress(ctx, strings.TrimRight(db, "/")+"/index/modules.json.gz"); err != nil {
			return &unreachableError{db, err}
		}
		return nil
	}
	return fmt.Errorf("--db: %q is no URL of https, http or file", db)
}

// checkFolder returns an error unless a folder has an index or entries. govulncheck itself accepts an
// empty folder, and would find no vulnerability.
func checkFolder(folder string) error {
	for _, pattern := range []string{"index/modules.json*", "*.json"} {
		files, err := fs.Glob(os.DirFS(folder), pattern)
		if err != nil || len(files) > 0 {
			return err
		}
	}
	return fmt.Errorf("%s has neither index/modules.json nor entries", folder)
}

// checkAddress returns an error unless a server has a file.
func checkAddress(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, address, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close() // an answer to HEAD has none
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s is answered with %s", address, response.Status)
	}
	return nil
}
