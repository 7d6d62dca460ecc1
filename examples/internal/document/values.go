package document

import (
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// path is the way from the root of a document to a value in it: keys (string) and indices
// (int).
type path []any

// toField returns the path as Kubernetes writes it: spec.containers[0].name.
func (p path) toField() *field.Path {
	var f *field.Path
	for _, step := range p {
		if index, ok := step.(int); ok {
			f = f.Index(index)
			continue
		}
		f = f.Child(step.(string))
	}
	return f
}

// values yields every value of a JSON document, a parent before its children and keys in
// alphabetical order. A text that is not JSON has no values.
func values(text []byte) iter.Seq2[path, any] {
	return func(yield func(path, any) bool) {
		var root any
		if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &root); err != nil {
			return
		}
		yieldAll(nil, root, yield)
	}
}

// yieldAll yields a value and all values in it. It returns false when yield has returned
// false.
func yieldAll(at path, value any, yield func(path, any) bool) bool {
	if !yield(at, value) {
		return false
	}
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if !yieldAll(append(slices.Clone(at), key), v[key], yield) {
				return false
			}
		}
	case []any:
		for i, item := range v {
			if !yieldAll(append(slices.Clone(at), i), item, yield) {
				return false
			}
		}
	}
	return true
}

// isLeaf reports whether a value contains no other values.
func isLeaf(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	default:
		return true
	}
}

// documentWith returns a document that contains one value at the path at, and nothing else.
// Where the path leads through a list, the list has one item, whatever the index is.
func documentWith(at path, value any) any {
	for _, step := range slices.Backward(at) {
		if key, ok := step.(string); ok {
			value = map[string]any{key: value}
			continue
		}
		value = []any{value}
	}
	return value
}
