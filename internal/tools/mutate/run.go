package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// run is one run of the program.
type run struct {
	o              options
	stdout, stderr io.Writer
	temp           string
	survivors      map[name]survivor
	json           *os.File // nil: none
	tally          *tally
}

func newRun(o options, stdout, stderr io.Writer) (*run, error) {
	root, err := filepath.Abs(o.root)
	if err != nil {
		return nil, err
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return nil, fmt.Errorf("--root: %w", err)
	}
	o.root = root
	r := &run{o: o, stdout: stdout, stderr: stderr, tally: newTally()}
	file := o.survivors
	if !filepath.IsAbs(file) {
		file = filepath.Join(root, file)
	}
	if r.survivors, err = readSurvivors(file); err != nil {
		return nil, fmt.Errorf("--survivors: %w", err)
	}
	if o.json != "" {
		if r.json, err = os.Create(o.json); err != nil {
			return nil, fmt.Errorf("--json: %w", err)
		}
	}
	if r.temp, err = openFolder("", "kubegrace-mutate-"); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

// close removes the temporary folder and closes the file of --json.
func (r *run) close() error {
	var errs []error
	if r.temp != "" {
		errs = append(errs, os.RemoveAll(r.temp))
	}
	if r.json != nil {
		errs = append(errs, r.json.Close())
	}
	return errors.Join(errs...)
}

// mutateAll mutates packages and prints the results.
func (r *run) mutateAll(ctx context.Context, packages []mutated) error {
	chosen, err := r.choose(ctx, packages)
	if err != nil {
		return err
	}
	if r.o.list {
		for _, m := range chosen {
			fmt.Fprintf(r.stdout, "%s:%d: %s: %s -> %s\n", m.file, m.line, m.function, m.was, m.is)
		}
		return nil
	}
	for _, pkg := range packages {
		ofPackage := slices.DeleteFunc(slices.Clone(chosen), func(m mutation) bool { return m.pkg.folder != pkg.folder })
		if len(ofPackage) == 0 {
			continue
		}
		if err := r.mutatePackage(ctx, pkg, ofPackage); err != nil {
			return fmt.Errorf("%s: %w", pkg.folder, err)
		}
	}
	return r.report()
}

// choose returns the mutations that the flags choose.
func (r *run) choose(ctx context.Context, packages []mutated) ([]mutation, error) {
	var chosen []mutation
	for _, pkg := range packages {
		files, err := r.command(ctx, filepath.Join(r.o.root, pkg.folder), "go", "list", "-f", `{{join .GoFiles " "}}`)
		if err != nil {
			return nil, err
		}
		found, err := mutations(r.o.root, pkg, strings.Fields(files))
		if err != nil {
			return nil, err
		}
		r.tally.addExisting(pkg, found)
		chosen = append(chosen, found...)
	}
	if r.o.match != nil {
		chosen = slices.DeleteFunc(chosen, func(m mutation) bool { return !r.o.match.MatchString(m.name().String()) })
	}
	if r.o.sample > 0 && r.o.sample < len(chosen) {
		random := rand.New(rand.NewPCG(r.o.seed, 0))
		random.Shuffle(len(chosen), func(i, k int) { chosen[i], chosen[k] = chosen[k], chosen[i] })
		chosen = chosen[:r.o.sample]
	}
	return chosen, nil
}

// mutatePackage tests mutants of one package.
func (r *run) mutatePackage(ctx context.Context, pkg mutated, mutations []mutation) error {
	began := time.Now()
	fmt.Fprintf(r.stderr, "%s: measuring what each test reaches\n", pkg.folder)
	reached, err := r.measure(ctx, pkg)
	if err != nil {
		return err
	}
	fmt.Fprintf(r.stderr, "%s: compiling %d mutants for %d tests (after %v)\n", pkg.folder, len(mutations), len(reached.tests), time.Since(began).Round(time.Second))
	c, valid, err := r.prepare(ctx, pkg, mutations)
	if err != nil {
		return err
	}
	c.coverage = reached
	if err := c.checkUnmutated(ctx); err != nil {
		return err
	}
	fmt.Fprintf(r.stderr, "%s: testing (after %v)\n", pkg.folder, time.Since(began).Round(time.Second))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	next := make(chan int)
	for range r.o.parallel {
		wg.Go(func() {
			for i := range next {
				j := judged{mutation: mutations[i], verdict: invalid}
				var err error
				if valid[i] {
					j, err = c.judge(ctx, mutations[i], i)
				}
				if err == nil {
					err = r.record(j)
				}
				if err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := range mutations {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	wg.Wait()
	r.tally.addTime(pkg, time.Since(began))
	return context.Cause(ctx)
}

// record adds a verdict to the tally and to the file of --json.
func (r *run) record(j judged) error {
	if _, ok := r.survivors[j.mutation.name()]; ok && j.verdict == survived {
		j.verdict = accepted
	}
	r.tally.add(j)
	m := j.mutation
	if j.verdict == survived {
		fmt.Fprintf(r.stderr, "%s:%d: survived: %s: %s -> %s\n", m.file, m.line, m.function, m.was, m.is)
	}
	if r.json == nil {
		return nil
	}
	line, err := json.Marshal(map[string]any{
		"file": m.file, "line": m.line, "function": m.function, "was": m.was, "is": m.is,
		"verdict": j.verdict, "by": j.by, "seconds": j.took.Seconds(),
	})
	if err != nil {
		return err
	}
	_, err = r.json.Write(append(line, '\n')) // one write for the whole line, so that lines of parallel mutants do not mix
	return err
}
