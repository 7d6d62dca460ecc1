package apistatustest

import (
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/json"
)

// fromProtobuf makes JSON of the body that client-go sends for the kinds of this
// server where its config does not name a content type.
func fromProtobuf(body []byte) ([]byte, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(v1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("failed to make a scheme: %w", err)
	}
	o, said, err := protobuf.NewSerializer(scheme, scheme).Decode(body, nil, nil)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("failed to decode the body: %v", err))
	}
	o.GetObjectKind().SetGroupVersionKind(*said)
	return json.Marshal(o)
}
