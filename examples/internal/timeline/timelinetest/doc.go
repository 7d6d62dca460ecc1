// Package timelinetest opens pages of package timeline in a headless Chromium and finds
// what cannot be read there:
//
//	browser := timelinetest.Start(t)
//	browser.Open(html)
//	browser.RequireReadable()
//
// # Concurrency properties
//
// A Browser is for one goroutine.
//
// # Failure modes
//
// Without a Chromium a test is skipped, or fails if package need requires all programs. All
// other failures of the browser fail the test.
//
// # Testing
//
// The tests of package timeline open a page that cannot be read, and check what is found.
package timelinetest
