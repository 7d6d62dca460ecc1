package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// tally counts verdicts. Its methods may be called from several goroutines.
type tally struct {
	mu       sync.Mutex
	packages []string                   // the folders, in the order of the run
	counts   map[string]map[verdict]int // by package
	times    map[string]time.Duration   // by package
	existing map[string]map[name]bool   // by package: all mutations of its source
	fresh    []judged                   // survivors that are not accepted
	dead     map[name]string            // the test that has killed a mutant of this name
	alive    map[name]bool              // accepted mutants that have survived
}

func newTally() *tally {
	return &tally{
		counts: map[string]map[verdict]int{}, times: map[string]time.Duration{},
		existing: map[string]map[name]bool{}, dead: map[name]string{}, alive: map[name]bool{},
	}
}

// addExisting adds all mutations of a package, chosen or not.
func (t *tally) addExisting(pkg mutated, mutations []mutation) {
	t.packages = append(t.packages, pkg.folder)
	t.counts[pkg.folder] = map[verdict]int{}
	t.existing[pkg.folder] = map[name]bool{}
	for _, m := range mutations {
		t.existing[pkg.folder][m.name()] = true
	}
}

// addTime records how long a package has taken.
func (t *tally) addTime(pkg mutated, took time.Duration) { t.times[pkg.folder] = took }

// add counts a verdict.
func (t *tally) add(j judged) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[j.mutation.pkg.folder][j.verdict]++
	switch j.verdict {
	case survived:
		t.fresh = append(t.fresh, j)
	case accepted:
		t.alive[j.mutation.name()] = true
	case killed, timedOut:
		t.dead[j.mutation.name()] = cmp.Or(j.by, string(timedOut))
	default:
	}
}

// report prints the results of the run. It returns an error if a mutant has survived that is not
// accepted.
func (r *run) report() error {
	t := r.tally
	for n := range r.survivors {
		by, wasKilled := t.dead[n]
		if wasKilled && !t.alive[n] {
			fmt.Fprintf(r.stdout, "no longer survives, killed by %s: %s\n", by, n)
		}
		if known, asked := t.existing[folderOf(n.file)]; asked && !known[n] {
			fmt.Fprintf(r.stdout, "accepted, but no mutation of the source: %s\n", n)
		}
	}
	slices.SortFunc(t.fresh, func(a, b judged) int {
		return cmp.Or(cmp.Compare(a.mutation.file, b.mutation.file), a.mutation.start-b.mutation.start)
	})
	for _, j := range t.fresh {
		text, err := entry(j.mutation.name())
		if err != nil {
			return err
		}
		fmt.Fprintf(r.stdout, "# %s:%d has survived\n%s", j.mutation.file, j.mutation.line, text)
	}
	if err := r.table(); err != nil {
		return err
	}
	if len(t.fresh) > 0 {
		return fmt.Errorf("%d mutants have survived that %s does not name", len(t.fresh), r.o.survivors)
	}
	return nil
}

// table prints the verdicts of each package as a Markdown table whose columns are aligned.
func (r *run) table() error {
	verdicts := []verdict{killed, timedOut, accepted, survived, unreached, invalid}
	table := tabwriter.NewWriter(r.stdout, 0, 0, 1, ' ', 0)
	head, rule := "| package\t| mutants", "|---\t|---"
	for _, v := range verdicts {
		head, rule = head+"\t| "+string(v), rule+"\t|---"
	}
	fmt.Fprintf(table, "%s\t| time\t|\n%s\t|---\t|\n", head, rule)
	for _, pkg := range r.tally.packages {
		all := 0
		for _, n := range r.tally.counts[pkg] {
			all += n
		}
		if all == 0 {
			continue
		}
		fmt.Fprintf(table, "| %s\t| %d", pkg, all)
		for _, v := range verdicts {
			fmt.Fprintf(table, "\t| %d", r.tally.counts[pkg][v])
		}
		fmt.Fprintf(table, "\t| %v\t|\n", r.tally.times[pkg].Round(time.Second))
	}
	return table.Flush()
}

func folderOf(file string) string { return file[:max(0, strings.LastIndexByte(file, '/'))] }
