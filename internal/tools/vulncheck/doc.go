// Command vulncheck looks for known vulnerabilities in what the modules of this repository
// use, with govulncheck:
//
//	cd internal/tools && go run ./vulncheck --root ../.. --db https://vuln.go.dev . examples
//
// The database is one as https://go.dev/security/vuln/database describes it, behind http,
// https or file. A folder of OSV entries is one too, an entry a file:
//
//	{"schema_version": "1.3.1", "id": "GO-0000-0001", "modified": "2026-01-01T00:00:00Z",
//	 "published": "2026-01-01T00:00:00Z", "summary": "An example", "details": "An example.",
//	 "affected": [{
//	   "package": {"name": "github.com/godbus/dbus/v5", "ecosystem": "Go"},
//	   "ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}],
//	   "ecosystem_specific": {"imports": [{"path": "github.com/godbus/dbus/v5", "symbols": ["NewConn"]}]}}],
//	 "database_specific": {"url": "https://example.org"}}
//
// It ends with 1 if the code calls what is vulnerable, or a module could not be examined. If
// the database cannot be reached nothing is examined, which is said and is no failure: the
// machine is at fault, and not the code. A folder that is not there is a failure.
//
// Of a module that has no packages, but names tools, the tools are examined.
package main
