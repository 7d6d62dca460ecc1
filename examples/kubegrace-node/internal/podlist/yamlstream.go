package podlist

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	yaml "go.yaml.in/yaml/v3"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// maxYAMLBytes is the size of the largest YAML document that is read. YAML is parsed as a whole,
// and that takes twenty times the memory of the text. JSON is read as a stream of any length.
const maxYAMLBytes = 16 << 20

var errLongYAML = fmt.Errorf("is too large: it has more than %d bytes (16 MiB), which are the limit of a YAML document; JSON may have any length: kubectl -o json", maxYAMLBytes)

// errNoObject is returned for a table of kubectl, among others.
var errNoObject = errors.New("is a text, wanted are objects as JSON or YAML: kubectl prints them with -o json")

// readYAML reads the documents of a YAML stream.
func (c *Cluster) readYAML(r io.Reader, static bool) error {
	input := &limitedReader{Reader: r, tooLarge: errLongYAML}
	documents := utilyaml.NewYAMLReader(bufio.NewReaderSize(input, bufferBytes))
	for i := 1; ; i++ {
		input.limit = input.read + maxYAMLBytes
		text, err := documents.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errLongYAML):
			return fmt.Errorf("document %d: %w", i, err)
		case err != nil:
			return fmt.Errorf("document %d: failed to read: %w", i, err)
		}
		if err := c.addYAML(text, static); err != nil {
			return fmt.Errorf("document %d: %w", i, err)
		}
	}
}

// addYAML adds the objects of a document.
func (c *Cluster) addYAML(text []byte, static bool) error {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return fmt.Errorf("not valid YAML: %w", err)
	}
	if root.Kind == 0 || len(root.Content) == 1 && root.Content[0].ShortTag() == "!!null" {
		return nil
	}
	if root.Content[0].Kind == yaml.ScalarNode {
		return errNoObject
	}
	return objectReader{&yamlValues{node: root.Content[0], budget: walkBudget(len(text))}, c, static}.object("")
}
