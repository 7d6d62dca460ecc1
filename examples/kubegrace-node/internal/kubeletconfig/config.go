package kubeletconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/kubegrace/kubegrace/examples/internal/config"
	"github.com/kubegrace/kubegrace/examples/internal/document"
)

// Config is what decides on a node's shutdown, or says where its pods are.
type Config = config.Config

// Parse reads one KubeletConfiguration, or the answer of /configz, as YAML or JSON. Errors begin
// with source.
func Parse(source string, text []byte) (Config, error) {
	doc, err := configuration(source, text)
	if err != nil {
		return Config{}, err
	}
	return config.Decode(doc)
}

// Load reads the file, unless it is "", and merges the drop-ins of the folder into it, unless that is
// "", as a kubelet does: all files that end in .conf, in the order of their paths, the last one wins.
func Load(file, folder string) (Config, error) {
	merged := document.Document{Source: file, JSON: []byte("{}")}
	if file != "" {
		text, err := document.ReadFile(file)
		if err != nil {
			return Config{}, err
		}
		if merged, err = configuration(file, text); err != nil {
			return Config{}, err
		}
	}
	if folder == "" {
		return config.Decode(merged)
	}
	info, err := os.Stat(folder)
	switch {
	case err != nil:
		return Config{}, fmt.Errorf("--config-dir: %s: failed to read: %w", folder, errors.Unwrap(err))
	case !info.IsDir():
		return Config{}, fmt.Errorf("--config-dir: %s: is a file, wanted is a folder of drop-ins: a single file goes with --config", folder)
	}
	found := file != ""
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".conf" {
			return err
		}
		found = true
		merged.JSON, err = merge(merged.JSON, path)
		return err
	})
	if err != nil {
		return Config{}, fmt.Errorf("--config-dir: %w", err)
	}
	if !found {
		return Config{}, fmt.Errorf("--config-dir: %s: has no file that ends in .conf, and a kubelet reads no others", folder)
	}
	merged.Source = strings.TrimPrefix(file+" and "+folder, " and ")
	return config.Decode(merged)
}

// merge merges a drop-in into a configuration.
func merge(into []byte, path string) ([]byte, error) {
	text, err := document.ReadFile(path)
	if err != nil {
		return nil, err
	}
	dropIn, err := configuration(path, text)
	if err != nil {
		return nil, err
	}
	if _, err := config.Decode(dropIn); err != nil { // names the file of a bad value
		return nil, err
	}
	merged, err := jsonpatch.MergePatch(into, dropIn.JSON)
	if err != nil {
		return nil, fmt.Errorf("%s: failed to merge: %w", path, err)
	}
	return merged, nil
}

// configuration returns the KubeletConfiguration of a text, or of an answer of /configz.
func configuration(source string, text []byte) (document.Document, error) {
	doc, err := config.Only(source, text)
	if err != nil {
		return doc, err
	}
	var answer map[string]json.RawMessage
	if json.Unmarshal(doc.JSON, &answer) == nil && len(answer) == 1 && answer["kubeletconfig"] != nil {
		doc.JSON = answer["kubeletconfig"]
		if doc.JSON[0] != '{' {
			return doc, fmt.Errorf("%s: kubeletconfig: is no mapping of fields, as a kubelet answers", source)
		}
		return doc, nil
	}
	if err := config.CheckKind(doc); err != nil {
		return doc, fmt.Errorf("%w, or what kubectl get --raw /api/v1/nodes/NODE/proxy/configz prints", err)
	}
	return doc, nil
}
