package apistatustest

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// patch carries out a PATCH of an object, or of its status.
func (a *api) patch(k kind, status bool) verb {
	return func(r *http.Request) (int, object, error) {
		merge, err := mergeOf(r, k)
		if err != nil {
			return 0, nil, err
		}
		body, err := read(r)
		if err != nil {
			return 0, nil, err
		}
		o, err := a.store.update(k, r.PathValue("namespace"), r.PathValue("name"), status, func(stored object) (object, error) {
			patched, err := patched(k, stored, body, merge)
			if err != nil {
				return nil, err
			}
			return patched, named(r, patched)
		})
		return http.StatusOK, o, err
	}
}

// merge makes a new document of an original and a patch.
type merge func(original, patch map[string]any) (map[string]any, error)

// mergeOf is how the patch of a request is to be read.
func mergeOf(r *http.Request, k kind) (merge, error) {
	switch types.PatchType(mediaType(r)) {
	case types.StrategicMergePatchType:
		return func(original, patch map[string]any) (map[string]any, error) {
			return strategicpatch.StrategicMergeMapPatch(original, patch, k.empty())
		}, nil
	case types.MergePatchType:
		return func(original, patch map[string]any) (map[string]any, error) {
			return mergeJSON(original, patch), nil
		}, nil
	default:
		return nil, unsupported(string(types.StrategicMergePatchType), string(types.MergePatchType))
	}
}

// patched is a new object of what is stored and a patch.
func patched(k kind, stored object, patch []byte, merge merge) (object, error) {
	original, err := json.Marshal(stored)
	if err != nil {
		return nil, err
	}
	var from, with map[string]any
	if err := json.Unmarshal(original, &from); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(patch, &with); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	merged, err := merge(from, with)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error applying patch: %v", err))
	}
	result, err := json.Marshal(merged)
	if err != nil {
		return nil, err
	}
	return decode(k, result)
}

// mergeJSON applies a patch as RFC 7386 says: null removes, objects are merged,
// everything else is replaced.
func mergeJSON(original, patch map[string]any) map[string]any {
	if original == nil {
		original = map[string]any{}
	}
	for name, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(original, name)
		case map[string]any:
			inner, _ := original[name].(map[string]any)
			original[name] = mergeJSON(inner, value)
		default:
			original[name] = value
		}
	}
	return original
}
