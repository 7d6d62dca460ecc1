package podlist

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	yaml "go.yaml.in/yaml/v3"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/kubegrace/kubegrace/examples/internal/document"
)

const (
	// batchSize is how many objects are parsed at a time, batchBytes from how many bytes
	// on there are no more of them.
	batchSize  = 32
	batchBytes = 1 << 20
	// mostBytes is how many bytes of text are parsed, or wait for it, at the same time.
	// What is parsed may take a hundred times as much memory.
	mostBytes = 2 * document.MaxDocumentBytes
)

// batch is a number of objects that follow each other.
type batch struct {
	first int // number of the first one, from 1
	texts [][]byte
	bytes int         // of all texts
	nodes []yaml.Node // what is in the texts; zero: nothing
	done  chan error  // nil: they are there
}

// readYAML splits a stream into its objects, parses them on all processors, which is where
// the time goes, and takes them in in their order.
func (c *Cluster) readYAML(ctx context.Context, r io.Reader, static bool) error {
	group, ctx := errgroup.WithContext(ctx)
	workers := runtime.GOMAXPROCS(0)
	work, ordered := make(chan *batch, workers), make(chan *batch, 2*workers)
	room := semaphore.NewWeighted(mostBytes)
	group.Go(func() error {
		defer close(work)
		defer close(ordered)
		return splitBatches(ctx, r, room, work, ordered)
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
			room.Release(int64(b.bytes))
		}
		return nil
	})
	return group.Wait()
}

// splitBatches sends the objects of a stream to be parsed and to be taken in.
func splitBatches(ctx context.Context, r io.Reader, room *semaphore.Weighted, to ...chan<- *batch) error {
	next := &batch{first: 1}
	send := func() error {
		if err := room.Acquire(ctx, int64(next.bytes)); err != nil {
			return err
		}
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
		next.bytes += len(text)
		if len(next.texts) < batchSize && next.bytes < batchBytes {
			return nil
		}
		return send()
	})
	if errors.Is(err, errTooLarge) {
		err = fmt.Errorf("object %d: %w", next.first+len(next.texts), err)
	}
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
		root := &b.nodes[i]
		if root.Kind == 0 || len(root.Content) == 1 && root.Content[0].ShortTag() == "!!null" {
			continue
		}
		object := reader{&tree{node: root.Content[0], left: walkable(len(b.texts[i]))}, c, static}
		if err := object.object(""); err != nil {
			return fmt.Errorf("object %d: %w", b.first+i, err)
		}
	}
	return nil
}
