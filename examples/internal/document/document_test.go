package document_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/examples/internal/document"
)

func TestParseSplitsIntoDocuments(t *testing.T) {
	for name, test := range map[string]struct {
		text    string
		sources []string
	}{
		"one":             {"a: 1\n", []string{"f"}},
		"two":             {"a: 1\n---\na: 2\n", []string{"f (document 1)", "f (document 2)"}},
		"separator first": {"---\na: 1\n", []string{"f"}},
		"comment only":    {"# nothing\n", []string{}},
		"empty between":   {"a: 1\n---\n# nothing\n---\na: 3\n", []string{"f (document 1)", "f (document 3)"}},
		"JSON":            {"\n\t{\"a\": 1}\n", []string{"f"}},
		"two JSON":        {"{\"a\": 1}\n{\"a\": 2}", []string{"f (document 1)", "f (document 2)"}},
		"nothing":         {"", []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			docs, err := document.Parse("f", []byte(test.text))
			require.NoError(t, err)
			sources := []string{}
			for _, doc := range docs {
				sources = append(sources, doc.Source)
			}
			require.Equal(t, test.sources, sources)
		})
	}
}

func TestErrorsNameSourceFieldAndValue(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"no YAML":            {"a: [", "f: not valid YAML: "},
		"second is no YAML":  {"kind: Pod\n---\na: [", "f (document 2): not valid YAML: "},
		"no JSON":            {"{\n\"kind\": }", "f: not valid JSON, line 2: "},
		"second is no JSON":  {"{}\n{}\n{]", "f (document 3): not valid JSON, line 3: "},
		"JSON cut off":       {"{\n\"kind\":\n", "f: not valid JSON, line 3: unexpected EOF"},
		"key given twice":    {"kind: Pod\nkind: Pod\n", `key "kind" already set in map`},
		"JSON given twice":   {`{"kind": "Pod", "kind": "Pod"}`, `f: kind: Invalid value: "Pod": is given twice`},
		"unknown field":      {"spec: {containers: [{imag: nginx}]}", `f: spec.containers[0].imag: Invalid value: "nginx": unknown field`},
		"by case":            {"Kind: Pod", `f: Kind: Invalid value: "Pod": unknown field`},
		"number wanted":      {"spec: {terminationGracePeriodSeconds: soon}", `f: spec.terminationGracePeriodSeconds: Invalid value: "soon": must be a whole number`},
		"fraction":           {"spec: {priority: 1.5}", "f: spec.priority: Invalid value: 1.5: must be a whole number"},
		"too large":          {"spec: {priority: 3000000000}", "f: spec.priority: Invalid value: 3000000000: must be a whole number from -2147483648 to 2147483647"},
		"string wanted":      {"metadata: {name: 5}", "f: metadata.name: Invalid value: 5: must be a string"},
		"boolean wanted":     {"spec: {hostNetwork: maybe}", `f: spec.hostNetwork: Invalid value: "maybe": must be true or false`},
		"list wanted":        {"spec: {containers: none}", `f: spec.containers: Invalid value: "none": must be a list`},
		"object wanted":      {"spec: 3", "f: spec: Invalid value: 3: must be a mapping of fields"},
		"second in list":     {"spec: {containers: [{name: a}, {name: 2}]}", "f: spec.containers[1].name: Invalid value: 2: must be a string"},
		"own decoder":        {"spec: {containers: [{resources: {limits: {cpu: lots}}}]}", `f: spec.containers[0].resources.limits.cpu: Invalid value: "lots": quantities must match`},
		"two unknown fields": {"a: 1\nb: 2", "f: a: Invalid value: 1: unknown field\nf: b: Invalid value: 2: unknown field"},
		"no object":          {"- a", "f: "},
		"a scalar":           {"5", "f: must be a mapping of fields, not 5"},
		"a sentence":         {"not a pod", "f: must be a mapping of fields, not not a pod"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decodeAll(test.text)
			require.ErrorContains(t, err, test.want)
		})
	}
}

// decodeAll decodes each document of a text into a pod.
func decodeAll(text string) (pods []*v1.Pod, err error) {
	docs, err := document.Parse("f", []byte(text))
	if err != nil {
		return nil, err
	}
	for _, doc := range docs {
		pod, err := document.Decode[v1.Pod](doc)
		if err != nil {
			return nil, err
		}
		pods = append(pods, pod)
	}
	return pods, nil
}

func TestDecode(t *testing.T) {
	pods, err := decodeAll("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {terminationGracePeriodSeconds: 5}\n---\nmetadata: {name: b}\n")
	require.NoError(t, err)
	require.Len(t, pods, 2)
	require.Equal(t, int64(5), *pods[0].Spec.TerminationGracePeriodSeconds)
	require.Equal(t, "b", pods[1].Name)
}

func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pod.yaml")
	_, err := document.Read(file)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, file)

	require.NoError(t, os.WriteFile(file, []byte("kind: Pod"), 0o600))
	docs, err := document.Read(file)
	require.NoError(t, err)
	require.Equal(t, []document.Document{{Source: file, JSON: []byte(`{"kind":"Pod"}`)}}, docs)
}

// A file of another kind may have any number of unknown fields.
func TestUnknownFieldsAreNamedUpToALimit(t *testing.T) {
	_, err := decodeAll("spec: {containers: [" + strings.Repeat("{imag: x}, ", 20) + "]}")
	require.Error(t, err)
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, 11)
	require.Equal(t, `f: spec.containers[9].imag: Invalid value: "x": unknown field`, lines[9])
	require.Equal(t, "f: and 10 more like these", lines[10])
}

func FuzzDecode(f *testing.F) {
	f.Add("spec: {containers: [{imag: nginx}]}")
	f.Add(`{"spec": {"priority": 1e99}}`)
	f.Fuzz(func(_ *testing.T, text string) {
		decodeAll(text) //nolint:errcheck // any result will do, a panic will not
	})
}
