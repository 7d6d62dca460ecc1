// Package timeline draws the shutdown of nodes as one HTML page that needs nothing
// beside itself: what is planned, what has happened, or both, one under the other.
//
//	page := timeline.Page{Title: "Shutdown of worker-1"}
//	node := timeline.FromPlan("worker-1", p) // a plan.Plan
//	node.Report(report)                      // a shutdown.Report beside it, or alone
//	page.Nodes = append(page.Nodes, node)
//	err := page.Write(w)
//
// The page has no script and loads nothing. Its bars are scaled to the width of the
// window and its labels are not, so that both read on a phone; it is light or dark as
// the reader's system is.
//
// # Concurrency properties
//
// Write may be called by several goroutines at once; a Node is for one.
//
// # Failure modes
//
// Write gives the error of its writer. Times that make no sense, an end before its
// start or one at the end of all time, are drawn as far as they go.
//
// # Testing
//
// The tests open the page in a headless Chromium.
package timeline
