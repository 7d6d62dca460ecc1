package apistatustest

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
)

// mediaType is the type of a request's body; JSON if it does not say.
func mediaType(r *http.Request) string {
	header := r.Header.Get("Content-Type")
	if header == "" {
		return runtime.ContentTypeJSON
	}
	name, _, err := mime.ParseMediaType(header)
	if err != nil {
		return header
	}
	return name
}

// unsupported refuses the media type of a body, in the API server's words.
func unsupported(accepted ...string) error {
	return apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "", schema.GroupResource{}, "",
		"the body of the request was in an unknown format - accepted media types include: "+strings.Join(accepted, ", "), 0, false)
}

// read is the body of a request.
func read(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("failed to read the body: %v", err))
	}
	return body, nil
}

// readJSON is the body of a request as JSON; it may have come as protobuf.
func readJSON(r *http.Request) ([]byte, error) {
	body, err := read(r)
	switch of := mediaType(r); {
	case err != nil || of == runtime.ContentTypeJSON:
		return body, err
	case of == runtime.ContentTypeProtobuf:
		return fromProtobuf(body)
	default:
		return nil, unsupported(runtime.ContentTypeJSON, runtime.ContentTypeProtobuf)
	}
}

// readObject is the object in the body of a request. Its namespace may be left to
// the path.
func readObject(r *http.Request, k kind) (object, error) {
	body, err := readJSON(r)
	if err != nil {
		return nil, err
	}
	o, err := decode(k, body)
	if err != nil {
		return nil, err
	}
	if o.GetNamespace() == "" {
		o.SetNamespace(r.PathValue("namespace"))
	}
	return o, nil
}

// decode makes an object of JSON. Like all that are stored it does not say what it
// is, which [encode] puts back.
func decode(k kind, body []byte) (object, error) {
	o := k.empty()
	if err := json.Unmarshal(body, o); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("failed to decode a %s: %v", k.Kind, err))
	}
	said := o.GetObjectKind().GroupVersionKind()
	if !said.Empty() && said != k.GroupVersionKind {
		return nil, apierrors.NewBadRequest(fmt.Sprintf(
			"%s in version %q cannot be handled as a %s", said.Kind, said.GroupVersion(), k.Kind))
	}
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return o, nil
}

// encode is a copy of a stored object that says what it is.
func encode(k kind, stored object) object {
	o := stored.DeepCopyObject().(object)
	o.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	return o
}

// encodeList is a list of stored objects.
func encodeList(k kind, stored []object, revision string) *metav1.List {
	list := &metav1.List{
		TypeMeta: metav1.TypeMeta{APIVersion: k.GroupVersion().String(), Kind: k.Kind + "List"},
		ListMeta: metav1.ListMeta{ResourceVersion: revision},
		Items:    make([]runtime.RawExtension, len(stored)),
	}
	for i, o := range stored {
		list.Items[i].Object = encode(k, o)
	}
	return list
}

// named refuses an object whose name or namespace is not that of the path.
func named(r *http.Request, o object) error {
	name, namespace := r.PathValue("name"), r.PathValue("namespace")
	if name != "" && o.GetName() != name {
		return apierrors.NewBadRequest(fmt.Sprintf(
			"the name of the object (%s) does not match the name on the URL (%s)", o.GetName(), name))
	}
	if o.GetNamespace() != namespace {
		return apierrors.NewBadRequest(fmt.Sprintf(
			"the namespace of the object (%s) does not match the namespace on the request (%s)", o.GetNamespace(), namespace))
	}
	return nil
}
