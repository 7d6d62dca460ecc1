package podlist

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// readSize is how much is read at a time.
const readSize = 1 << 20

// Read reads a stream of JSON or YAML to its end. The source names it in errors.
func (c *Cluster) Read(ctx context.Context, source string, r io.Reader) error {
	return c.read(ctx, source, r, false)
}

// ReadFolder reads the manifests of a folder, the files that end in .yaml, .yml or
// .json in the order of their names, as a kubelet reads its static pods. open opens
// each, so that its reading can be shown.
func (c *Cluster) ReadFolder(ctx context.Context, folder string, open func(file string) (io.ReadCloser, error)) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) {
			continue
		}
		file := filepath.Join(folder, entry.Name())
		if err := c.readManifest(ctx, file, open); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) readManifest(ctx context.Context, file string, open func(file string) (io.ReadCloser, error)) (err error) {
	r, err := open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return c.read(ctx, file, r, true)
}

// read looks at the beginning of a stream to know what it is.
func (c *Cluster) read(ctx context.Context, source string, r io.Reader, static bool) error {
	buffered := bufio.NewReaderSize(r, readSize)
	start, err := buffered.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: failed to read: %w", source, err)
	}
	if utilyaml.IsJSONBuffer(start) {
		err = c.readJSON(buffered, static)
	} else {
		err = c.readYAML(ctx, buffered, static)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	return nil
}

// readJSON reads JSON objects that follow each other.
func (c *Cluster) readJSON(r io.Reader, static bool) error {
	objects := reader{newScanner(r), c, static}
	for {
		err := objects.object("")
		if err == io.EOF { //nolint:errorlint // a wrapped one is of the middle of an object
			return nil
		}
		if err != nil {
			return err
		}
	}
}
