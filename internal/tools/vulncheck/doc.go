// Command vulncheck runs govulncheck on the modules of this repository, to find known
// vulnerabilities in the code that they use:
//
//	cd internal/tools && go run ./vulncheck --root ../.. --db https://vuln.go.dev . examples
//
// The URL of the database has the scheme https, http or file. https://go.dev/security/vuln/database
// describes the format. A folder with one file for each OSV entry is a database, too:
//
//	{"schema_version": "1.3.1", "id": "GO-0000-0001", "modified": "2026-01-01T00:00:00Z",
//	 "published": "2026-01-01T00:00:00Z", "summary": "An example", "details": "An example.",
//	 "affected": [{
//	   "package": {"name": "github.com/godbus/dbus/v5", "ecosystem": "Go"},
//	   "ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}],
//	   "ecosystem_specific": {"imports": [{"path": "github.com/godbus/dbus/v5", "symbols": ["NewConn"]}]}}],
//	 "database_specific": {"url": "https://example.org"}}
//
// The exit status is 1 if the code calls a vulnerable function, or if a module cannot be examined. If
// the database cannot be reached, nothing is examined. The program says so, and the exit status is 0,
// because the fault is not in the code. A folder that does not exist is an error.
//
// If a module has no packages, but tools, its tools are examined.
package main
