// Package process runs processes as the containers of a [lifecycle.Terminator]:
//
//	runtime := process.New(nil)
//	defer runtime.Close()
//	line, err := runtime.Start(ctx, "web", []string{"./web"}, os.Stderr)
//	err = runtime.StopContainer(ctx, "web", 30)
//
// # Concurrency properties
//
// All methods may be called concurrently.
//
// # Failure modes
//
// Each process has a pipe as its standard input. The pipe closes when this program ends, in
// whatever way, so a process that exits at the end of its input never outlives this program.
//
// # Testing
//
// The tests run shell scripts.
package process
