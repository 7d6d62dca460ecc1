// Package timelinetest opens pages of package timeline in a real browser, a headless
// Chromium, and finds what a reader could not read:
//
//	browser := timelinetest.Start(t)
//	browser.Open(html)
//	browser.RequireReadable(400, "dark")
//
// # Concurrency properties
//
// A Browser is for one goroutine.
//
// # Failure modes
//
// A test is skipped where there is no Chromium, or fails, as package need says.
//
// # Testing
//
// This package is for tests.
package timelinetest
