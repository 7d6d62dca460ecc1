package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// oneVulnerability returns the URL of a database with one vulnerability: a function in all versions of a
// module.
func oneVulnerability(t *testing.T, module, path, symbol string) (url string) {
	t.Helper()
	dir := t.TempDir()
	text := fmt.Sprintf(`{"schema_version": "1.3.1", "id": "GO-0000-0001", "modified": "2026-01-01T00:00:00Z", "published": "2026-01-01T00:00:00Z",
		"summary": "An example", "details": "An example.",
		"affected": [{"package": {"name": %q, "ecosystem": "Go"}, "ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}],
			"ecosystem_specific": {"imports": [{"path": %q, "symbols": [%q]}]}}],
		"database_specific": {"url": "https://example.org"}}`, module, path, symbol)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "GO-0000-0001.json"), []byte(text), 0o600))
	return "file://" + dir
}

// run runs the program on modules of this repository and returns what it prints.
func run(t *testing.T, db string, modules ...string) (stdout string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	err = vulncheck(t.Context(), append([]string{"--root", "../../..", "--db", db}, modules...), &out, &errs)
	return out.String() + errs.String(), err
}

func TestAVulnerabilityIsFound(t *testing.T) {
	printed, err := run(t, oneVulnerability(t, "golang.org/x/mod", "golang.org/x/mod/modfile", "Parse"), "internal/tools")
	require.EqualError(t, err, "module internal/tools: vulnerabilities were found, see above", printed)
	require.Contains(t, printed, "Vulnerability #1: GO-0000-0001")
}

func TestWhatIsNotCalledIsNoFailure(t *testing.T) {
	printed, err := run(t, oneVulnerability(t, "golang.org/x/mod", "golang.org/x/mod/zip", "CreateFromVCS"), "internal/tools")
	require.NoError(t, err, printed)
	require.NotContains(t, printed, "SKIPPED")
}

func TestOfAModuleWithoutPackagesTheToolsAreExamined(t *testing.T) {
	root := t.TempDir()
	for _, folder := range []string{"internal/tools", "only-tools"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, folder), 0o700))
		for _, name := range []string{"go.mod", "go.sum"} {
			text, err := os.ReadFile(filepath.Join("..", name))
			require.NoError(t, err)
			if folder == "only-tools" && name == "go.mod" {
				text = []byte("module example.org/only\n\ngo 1.26.0\n\ntool golang.org/x/mod/gosumcheck\n\nrequire golang.org/x/mod v0.42.0 // indirect\n")
			}
			require.NoError(t, os.WriteFile(filepath.Join(root, folder, name), text, 0o600))
		}
	}
	printed, err := run(t, oneVulnerability(t, "golang.org/x/mod", "golang.org/x/mod/sumdb", "NewClient"), "--root", root, "only-tools")
	require.EqualError(t, err, "module only-tools: vulnerabilities were found, see above", printed)
}

// Without a database nothing is examined. The output says so, so that nobody takes it for a success.
func TestADatabaseThatCannotBeReached(t *testing.T) {
	nobody := httptest.NewServer(http.NotFoundHandler())
	nobody.Close()
	refused := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer refused.Close()
	for db, why := range map[string]string{nobody.URL: "connection refused", refused.URL: "403 Forbidden"} {
		printed, err := run(t, db, "internal/tools")
		require.NoError(t, err)
		require.Contains(t, printed, "*** vulncheck SKIPPED: nothing was examined. ***\nThe vulnerability database "+db+" cannot be reached")
		require.Contains(t, printed, why)
		require.NotContains(t, printed, "== vulncheck")
	}
}

// An empty folder is an error, so that nobody takes it for a database without matches.
func TestAFolderWithoutEntries(t *testing.T) {
	folder := t.TempDir()
	printed, err := run(t, "file://"+folder, "internal/tools")
	require.EqualError(t, err, fmt.Sprintf("--db file://%s: %s has neither index/modules.json nor entries", folder, folder))
	require.NotContains(t, printed, "== vulncheck")
}

func TestADatabaseThatIsNone(t *testing.T) {
	for db, why := range map[string]string{"file:///absent": "--db file:///absent: stat /absent: no such file", "vuln.go.dev": "is no URL of", "": "is no URL of", "file:///dev/null": "is not a folder"} {
		_, err := run(t, db, "internal/tools")
		require.ErrorContains(t, err, why)
	}
	_, err := run(t, "file:///absent")
	require.EqualError(t, err, "no modules are named")
	_, err = run(t, oneVulnerability(t, "golang.org/x/mod", "golang.org/x/mod/zip", "CreateFromVCS"), "absent")
	require.ErrorContains(t, err, "module absent: ")
}
