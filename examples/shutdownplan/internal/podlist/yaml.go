package podlist

import (
	"context"
	"fmt"
	"io"
	"runtime"

	yaml "go.yaml.in/yaml/v3"
	"golang.org/x/sync/errgroup"
)

// batchSize is how many objects are parsed at a time.
const batchSize = 32

// batch is a number of objects that follow each other.
type batch struct {
	first int // number of the first one, from 1
	texts [][]byte
	nodes []yaml.Node // what is in the texts; zero: nothing
	done  chan error  // nil: they are there
}

// readYAML splits a stream into its objects, parses them on all processors, which is where
// the time goes, and takes them in in their order.
func (c *Cluster) readYAML(ctx context.Context, r io.Reader, static bool) error {
	group, ctx := errgroup.WithContext(ctx)
	workers := runtime.GOMAXPROCS(0)
	work, ordered := make(chan *batch, workers), make(chan *batch, 2*workers)
	group.Go(func() error {
		defer close(work)
		defer close(ordered)
		return splitBatches(ctx, r, work, ordered)
	})
	for range workers {
		group.Go(func() error {
			for b := range work {
				b.done <- b.parse()
			}
			return nil
		})
	}
	group.Go(func() error {
		for b := range ordered {
			if err := c.take(b, static); err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}

// splitBatches sends the objects of a stream to be parsed and to be taken in.
func splitBatches(ctx context.Context, r io.Reader, to ...chan<- *batch) error {
	next := &batch{first: 1}
	send := func() error {
		next.done = make(chan error, 1)
		for _, channel := range to {
			select {
			case channel <- next:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		next = &batch{first: next.first + len(next.texts)}
		return nil
	}
	err := splitObjects(r, func(text []byte) error {
		next.texts = append(next.texts, text)
		if len(next.texts) < batchSize {
			return nil
		}
		return send()
	})
	if err != nil || len(next.texts) == 0 {
		return err
	}
	return send()
}

// parse parses the texts.
func (b *batch) parse() error {
	b.nodes = make([]yaml.Node, len(b.texts))
	for i, text := range b.texts {
		if err := yaml.Unmarshal(text, &b.nodes[i]); err != nil {
			return fmt.Errorf("object %d is not valid YAML: %w", b.first+i, err)
		}
	}
	return nil
}

// take reads the objects of a batch as soon as they are parsed.
func (c *Cluster) take(b *batch, static bool) error {
	if err := <-b.done; err != nil {
		return err
	}
	for i := range b.nodes {
		document := &b.nodes[i]
		if document.Kind == 0 || len(document.Content) == 1 && document.Content[0].ShortTag() == "!!null" {
			continue
		}
		object := reader{&tree{node: document.Content[0]}, c, static}
		if err := object.object(""); err != nil {
			return fmt.Errorf("object %d: %w", b.first+i, err)
		}
	}
	return nil
}
