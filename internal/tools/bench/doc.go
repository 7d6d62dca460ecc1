// Command bench runs the benchmarks of the repository and prints one table: what kubegrace
// takes, what the plain way of doing the same takes, and the ratio.
//
//	go run ./bench --root ../.. . examples
//	go run ./bench --root ../.. --only 'podkiller|logind.Start' --count 3 .
//	go run ./bench --root ../.. --base main .
//
// The arguments are the folders of the modules, below the root. The ways of one row have the
// same name except for the key "way": X/pods=10/way=plain and X/pods=10/way=kubegrace make the
// row X/pods=10. A benchmark without a plain way is in a second table, with its reason from
// alone.go; a missing reason is an error. The time is that of an operation, unless the
// benchmark reports another unit (ns/status). Memory is shown if the benchmark reports it
// (ReportAllocs, or a unit such as B/pod).
//
// Each benchmark runs in a process of its own, so that garbage and goroutines of another one
// cannot change its result. A round runs each benchmark once, and there are --count rounds, so
// that a machine that slows down slows both ways. The figures are medians with their confidence
// interval of 95%. A ratio is marked with ~ if the Mann-Whitney test finds that it may be
// chance. The statistics are those of benchstat (golang.org/x/perf/benchmath), which also reads
// the files in --raw; in internal/tools:
//
//	go tool benchstat -col /way ../../.cache/bench/here.txt
//
// If a benchmark has both pods=10000 and pods=50000, the median of the larger one may be at most
// six times that of the smaller one. The exit status is 1 if it is more, if a benchmark fails, and
// if one has neither a plain way nor a reason.
//
// With --base the table compares this tree with another commit, which is checked out in a
// worktree. Their benchmarks run in turn, without the plain ways. Benchmarks that the other
// commit does not have are listed.
package main
