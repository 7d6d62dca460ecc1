package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"sigs.k8s.io/yaml"
)

// The values of --format.
const (
	formatList  = "list"
	formatLines = "lines"
	formatYAML  = "yaml"
)

// write writes the list of a cluster's pods.
func write(w io.Writer, format string, size clusterSize) error {
	if size.nodes < 1 || size.pods < 0 {
		return fmt.Errorf("%d nodes and %d pods make no cluster", size.nodes, size.pods)
	}
	text, frame, err := render(format)
	if err != nil {
		return err
	}
	model := newTemplate(text)
	if _, err := io.WriteString(w, frame.before); err != nil {
		return err
	}
	var item []byte
	for i := range size.pods {
		item = item[:0]
		if i > 0 {
			item = append(item, frame.between...)
		}
		item = model.appendPod(item, i, size.nodes)
		if _, err := w.Write(item); err != nil {
			return err
		}
	}
	_, err = io.WriteString(w, frame.after)
	return err
}

// frame is the text of a list around its pods.
type frame struct{ before, between, after string }

// render returns the model pod and the frame of the list in a format. The pod has about 8 KB in
// each format, because it has fewer settings where the format has more indentation.
func render(format string) (text []byte, around frame, err error) {
	switch format {
	case formatLines:
		text, err = json.Marshal(model(18))
		return text, frame{"", "\n", "\n"}, err
	case formatList:
		text, err = json.MarshalIndent(model(0), "        ", "    ")
		return text, frame{
			"{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n        ", ",\n        ",
			"\n    ],\n    \"kind\": \"List\",\n    \"metadata\": {\n        \"resourceVersion\": \"\"\n    }\n}\n",
		}, err
	case formatYAML:
		text, err = yaml.Marshal([]any{model(12)})
		return text, frame{"apiVersion: v1\nitems:\n", "", "kind: List\nmetadata:\n  resourceVersion: \"\"\n"}, err
	default:
		return nil, frame{}, fmt.Errorf("format %q is none of %s, %s, %s", format, formatList, formatLines, formatYAML)
	}
}

// template is the text of the model pod, split at its placeholders.
type template struct {
	texts        [][]byte // before, between and after the placeholders
	placeholders []string
}

// newTemplate cuts a text at its placeholders: texts[i] stands before placeholders[i], and the last
// text after all of them.
func newTemplate(text []byte) template {
	var t template
	for {
		at, found := len(text), ""
		for _, placeholder := range []string{placeholderNumber, placeholderNode, placeholderGrace, placeholderPriority, placeholderSleep} {
			if i := bytes.Index(text, []byte(placeholder)); i >= 0 && i < at {
				at, found = i, placeholder
			}
		}
		t.texts = append(t.texts, text[:at])
		if found == "" {
			return t
		}
		t.placeholders = append(t.placeholders, found)
		text = text[at+len(found):]
	}
}

// appendPod appends the text of the pod with the index i. Pods that follow each other are on
// different nodes.
func (t template) appendPod(to []byte, i, nodes int) []byte {
	graces := [...]int64{30, 30, 30, 30, 60, 10, 120, 0}
	priorities := [...]int64{0, 0, 0, 1000, 0, 100_000, 2_000_000_000, 2_000_001_000}
	for k, text := range t.texts {
		to = append(to, text...)
		if k == len(t.placeholders) {
			break
		}
		switch t.placeholders[k] {
		case placeholderNumber:
			to = strconv.AppendInt(to, int64(1_000_000+i), 10)
		case placeholderNode:
			to = strconv.AppendInt(to, int64(10_000+i%nodes), 10)
		case placeholderGrace:
			to = strconv.AppendInt(to, graces[(i/nodes+i%nodes)%len(graces)], 10)
		case placeholderPriority:
			to = strconv.AppendInt(to, priorities[(i/nodes+i/7)%len(priorities)], 10)
		case placeholderSleep:
			to = strconv.AppendInt(to, int64(i%13), 10)
		}
	}
	return to
}
