package podlist

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// bufferBytes is how many bytes are read at a time.
const bufferBytes = 1 << 20

// Read reads a stream of JSON or YAML to its end. Errors begin with source.
func (c *Cluster) Read(ctx context.Context, source string, r io.Reader) error {
	return c.read(ctx, source, r, false)
}

// ReadFolder reads the manifests of static pods in a folder: the files that end in .yaml,
// .yml or .json, in the order of their names. It opens each file with open.
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

// readManifest reads a regular file of a folder, or the regular file that a link leads to. A
// pipe or a device in a folder is an error, because reading it might never end.
func (c *Cluster) readManifest(ctx context.Context, file string, open func(file string) (io.ReadCloser, error)) (err error) {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: is not a regular file, as a manifest is", file)
	}
	r, err := open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return c.read(ctx, file, r, true)
}

// read reads a stream. Its first bytes decide whether it is JSON or YAML.
func (c *Cluster) read(ctx context.Context, source string, r io.Reader, static bool) error {
	buffered := bufio.NewReaderSize(r, bufferBytes)
	start, err := buffered.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: failed to read: %w", source, err)
	}
	if isBinary(start) {
		return fmt.Errorf("%s: is no text, wanted is JSON or YAML", source)
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

// isBinary reports whether a stream is no text, because zero bytes are in its start. A text in
// UTF-16, as PowerShell writes it, has zero bytes as well, but begins with a byte order mark.
func isBinary(start []byte) bool {
	utf16 := bytes.HasPrefix(start, []byte{0xff, 0xfe}) || bytes.HasPrefix(start, []byte{0xfe, 0xff})
	return !utf16 && bytes.IndexByte(start, 0) >= 0
}

// readJSON reads JSON objects that follow each other.
func (c *Cluster) readJSON(r io.Reader, static bool) error {
	objects := objectReader{newJSONValues(r), c, static}
	for {
		err := objects.object("")
		if err == io.EOF { //nolint:errorlint // a wrapped io.EOF is an object that was cut off
			return nil
		}
		if err != nil {
			return err
		}
	}
}
