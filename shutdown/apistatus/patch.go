package apistatus

import (
	"encoding/json"
	"errors"

	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// twoWayPatch returns the strategic merge patch from before to after. A UID or
// resourceVersion that only after has becomes a precondition.
func twoWayPatch[T any](before, after T) ([]byte, error) {
	old, errOld := json.Marshal(before)
	changed, errChanged := json.Marshal(after)
	if err := errors.Join(errOld, errChanged); err != nil {
		return nil, err
	}
	return strategicpatch.CreateTwoWayMergePatch(old, changed, before)
}
