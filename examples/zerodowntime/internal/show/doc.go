// Package show shows results of package rollout: as text in a terminal, as JSON and as a
// picture.
//
//	err := show.Text(os.Stdout, results, delay, show.Style{Width: 80})
//	err = show.JSON(os.Stdout, results, delay, false)
//	err = show.Picture(file, results, "svg")
//
// # Concurrency properties
//
// The package has functions only, and no state.
//
// # Failure modes
//
// The errors are those of the writers. [Advise] advises nothing that the results do not show:
// where a scenario is missing it says which.
//
// # Testing
//
// All functions depend on their arguments only, so the tests make up results.
package show
