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
	// batchSize objects, or batchBytes bytes, fill a batch.
	batchSize  = 32
	batchBytes = 1 << 20
	// maxParsedBytes is how many bytes of text may be in batches that are parsed or wait. The
	// parsed objects may take a hundred times as much memory.
	maxParsedBytes = 2 * document.MaxDocumentBytes
)

// batch has objects that follow each other in a stream.
type batch struct {
	first int         // the number of the first object, from 1
	texts [][]byte    // of the objects
	bytes int         // the length of all texts
	roots []yaml.Node // the parsed objects; a text without an object has a zero Node
	done  chan error  // gets one value when roots is set, or the error of the parser
}

// readYAML splits a stream into batches of objects, parses the batches on all processors,
// because most of the time goes there, and adds the objects to the cluster in their order.
func (c *Cluster) readYAML(ctx context.Context, r io.Reader, static bool) error {
	group, ctx := errgroup.WithContext(ctx)
	workers := runtime.GOMAXPROCS(0)
	work, ordered := make(chan *batch, workers), make(chan *batch, 2*workers)
	memory := semaphore.NewWeighted(maxParsedBytes)
	group.Go(func() error {
		defer close(work)
		defer close(ordered)
		return splitBatches(ctx, r, memory, work, ordered)
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
			if err := c.addBatch(b, static); err != nil {
				return err
			}
			memory.Release(int64(b.bytes))
		}
		return nil
	})
	return group.Wait()
}

// splitBatches splits a stream into batches and sends each batch to all channels.
func splitBatches(ctx context.Context, r io.Reader, memory *semaphore.Weighted, to ...chan<- *batch) error {
	next := &batch{first: 1}
	send := func() error {
		if err := memory.Acquire(ctx, int64(next.bytes)); err != nil {
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

func (b *batch) parse() error {
	b.roots = make([]yaml.Node, len(b.texts))
	for i, text := range b.texts {
		if err := yaml.Unmarshal(text, &b.roots[i]); err != nil {
			return fmt.Errorf("object %d is not valid YAML: %w", b.first+i, err)
		}
	}
	return nil
}

// addBatch waits until a batch is parsed, and adds its objects to the cluster.
func (c *Cluster) addBatch(b *batch, static bool) error {
	if err := <-b.done; err != nil {
		return err
	}
	for i := range b.roots {
		root := &b.roots[i]
		if root.Kind == 0 || len(root.Content) == 1 && root.Content[0].ShortTag() == "!!null" {
			continue
		}
		object := objectReader{&yamlValues{node: root.Content[0], budget: walkBudget(len(b.texts[i]))}, c, static}
		if err := object.object(""); err != nil {
			return fmt.Errorf("object %d: %w", b.first+i, err)
		}
	}
	return nil
}
