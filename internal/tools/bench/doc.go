// Command bench runs the benchmarks of the repository, each beside the plain way of doing
// the same, and prints one table of what either takes and of their ratios.
//
//	go run ./bench --root ../.. . examples
//	go run ./bench --root ../.. --only 'podkiller|logind.Start' --count 3 .
//	go run ./bench --root ../.. --base main .
//
// The arguments are the folders of the modules, below the root. What belongs together is
// named with the key "way": of the benchmarks X/pods=10/way=plain and X/pods=10/way=kubegrace
// a row X/pods=10 is made. A benchmark without a plain way stands apart, with the reason that
// alone.go has for it; without a reason it is an error. Time is that of an operation, unless
// the benchmark reports another one (ns/status); memory is shown where the benchmark reports
// it (ReportAllocs, or a unit such as B/pod).
//
// Each benchmark runs in a process of its own, so that it finds no garbage and no goroutines
// of another one, and all of them in turn, --count rounds long, so that a machine that slows
// down slows both ways. The figures are medians with their confidence interval of 95%; a
// ratio is marked with ~ where the Mann-Whitney test finds that it may be chance. All of that
// is benchstat's own (golang.org/x/perf/benchmath), and the files in --raw are for benchstat,
// in internal/tools:
//
//	go tool benchstat -col /way ../../.cache/bench/here.txt
//
// Where a benchmark has both pods=10000 and pods=50000, the larger one may cost at most six
// times as much, by the medians. The exit status is 1 where it costs more, where
// a benchmark fails, and where one has neither a plain way nor a reason.
//
// With --base the same benchmarks, the plain ways left out, run by turns in a worktree of
// another commit and in this one, and the table is of these two. Benchmarks that the other
// commit lacks are listed.
package main
