package podlist

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// bufferBytes is how many bytes are read at a time.
const bufferBytes = 1 << 20

// Read reads a stream of JSON or YAML to its end. Errors begin with source.
func (c *Cluster) Read(source string, r io.Reader) error {
	return c.read(source, r, false)
}

// ReadFolder reads the manifests of static pods in a folder: the files that end in .yaml,
// .yml or .json, in the order of their names. It opens each file with open.
func (c *Cluster) ReadFolder(folder string, open func(file string) (io.ReadCloser, error)) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name())) {
			continue
		}
		file := filepath.Join(folder, entry.Name())
		if err := c.readManifest(file, open); err != nil {
			return err
		}
	}
	return nil
}

// readManifest reads a regular file of a folder, or the regular file that a link leads to. A
// pipe or a device in a folder is an error, because reading it might never end.
func (c *Cluster) readManifest(file string, open func(file string) (io.ReadCloser, error)) (err error) {
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
	return c.read(file, r, true)
}

// read reads a stream, which may be compressed with gzip. Its first bytes decide whether it is JSON
// or YAML.
func (c *Cluster) read(source string, r io.Reader, static bool) error {
	buffered := bufio.NewReaderSize(r, bufferBytes)
	if magic, _ := buffered.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) { // an error is met again below
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return fmt.Errorf("%s: begins as gzip does, but is damaged: %w", source, err)
		}
		buffered = bufio.NewReaderSize(unzipped, bufferBytes)
	}
	if start, _ := buffered.Peek(3); hasByteOrderMark(start) {
		buffered = bufio.NewReaderSize(transform.NewReader(buffered, unicode.BOMOverride(transform.Nop)), bufferBytes)
	}
	start, err := buffered.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s: failed to read: %w", source, err)
	}
	switch {
	case bytes.IndexByte(start, 0) >= 0:
		return fmt.Errorf("%s: is no text, wanted is JSON or YAML, also with gzip", source)
	case utilyaml.IsJSONBuffer(bytes.TrimLeft(start, "- \t\r\n")):
		err = c.readJSON(&separatorReader{Reader: buffered}, static)
	default:
		err = c.readYAML(buffered, static)
	}
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s: ends too early, as if it was cut off: %w", source, err)
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: not valid JSON: %w, at byte %d, within %q", source, syntax.Err, syntax.ByteOffset, syntax.JSONPointer)
	case err != nil:
		return fmt.Errorf("%s: %w", source, err)
	}
	return nil
}

// hasByteOrderMark reports whether a text begins with a mark of UTF-8 or UTF-16, as PowerShell
// writes it.
func hasByteOrderMark(start []byte) bool {
	return bytes.HasPrefix(start, []byte{0xef, 0xbb, 0xbf}) || bytes.HasPrefix(start, []byte{0xff, 0xfe}) || bytes.HasPrefix(start, []byte{0xfe, 0xff})
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
