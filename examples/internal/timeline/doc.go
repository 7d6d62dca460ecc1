// Package timeline draws the shutdown of nodes as one self-contained HTML page: what is
// planned, what has happened, or both, with one bar above the other:
//
//	page := timeline.Page{Title: "Shutdown of worker-1"}
//	node := timeline.Node{Name: "worker-1", Buckets: buckets} // what was planned
//	node.Report(report)                                       // a shutdown.Report beside it, or alone
//	page.Nodes = append(page.Nodes, node)
//	err := page.Write(w)
//
// The page has no script and loads nothing. Its bars are scaled to the width of the
// window and its labels are not, so that both can be read on a phone. Its colors are
// light or dark as the reader's system asks for.
//
// # Concurrency properties
//
// Several goroutines may call Write at once. A Node is for one goroutine.
//
// # Failure modes
//
// Write returns the error of its writer. Impossible times are drawn as far as possible: an
// end before its start as a bar without width, and a time that is too long as the longest
// time of the axis.
//
// # Testing
//
// The tests open the page in a headless Chromium.
package timeline
