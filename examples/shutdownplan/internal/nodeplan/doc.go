// Package nodeplan works out what the shutdown of each node would do to its pods, and
// what to change so that none is cut short:
//
//	settings, err := nodeplan.NewSettings(config, gates, options)
//	totals := settings.Totals()
//	for _, node := range cluster.Nodes() {
//		planned := settings.Plan(node)
//		totals.Add(planned)
//	}
//	summary := totals.Summary()
//
// The arithmetic is that of package shutdown/plan, which an agent drains by, the
// warnings are those of package validation.
//
// # The document
//
// The types of this package are what shutdownplan prints with -o json and -o yaml:
// a Document, whose apiVersion is [APIVersion]. A field may be added to a version,
// none is removed from it or changes its meaning. Times count in seconds from the
// announcement of the shutdown.
//
// # Concurrency properties
//
// Settings may be used by several goroutines; a Totals is for one.
//
// # Failure modes
//
// Settings that a kubelet refuses are an error of NewSettings. There is a plan for
// everything else.
//
// # Testing
//
// Everything is a function of its arguments.
package nodeplan
