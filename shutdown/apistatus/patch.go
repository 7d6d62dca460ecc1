package apistatus

import (
	"encoding/json"
	"errors"

	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// twoWayPatch is the strategic merge patch that makes one object of the other. An
// identity that only the second one has is a precondition.
func twoWayPatch[T any](before, after T) ([]byte, error) {
	old, errOld := json.Marshal(before)
	changed, errChanged := json.Marshal(after)
	if err := errors.Join(errOld, errChanged); err != nil {
		return nil, err
	}
	return strategicpatch.CreateTwoWayMergePatch(old, changed, before)
}
