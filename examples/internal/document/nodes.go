package document

import (
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// path leads from the root of a document to a value in it: keys and indices.
type path []any

// toField is the path as Kubernetes writes it: spec.containers[0].name.
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

// nodes gives every value of a JSON document in a stable order, parents first.
func nodes(text []byte) iter.Seq2[path, any] {
	return func(yield func(path, any) bool) {
		var root any
		if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &root); err != nil {
			return // what is no JSON has no values
		}
		visit(nil, root, yield)
	}
}

func visit(at path, value any, yield func(path, any) bool) bool {
	if !yield(at, value) {
		return false
	}
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if !visit(append(slices.Clone(at), key), v[key], yield) {
				return false
			}
		}
	case []any:
		for i, item := range v {
			if !visit(append(slices.Clone(at), i), item, yield) {
				return false
			}
		}
	}
	return true
}

// leaf tells whether a value has no values in it.
func leaf(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	default:
		return true
	}
}

// wrap is a document that has nothing but one value, at its path. In a list it
// is the only item.
func wrap(at path, value any) any {
	for _, step := range slices.Backward(at) {
		if key, ok := step.(string); ok {
			value = map[string]any{key: value}
			continue
		}
		value = []any{value}
	}
	return value
}
