package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// newScheme returns a scheme with the types of the resources. k8s.io/apiserver converts each object to an internal
// version. Here each type is its own internal version, so nothing has to be converted.
func newScheme(all []resource) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	groups := map[schema.GroupVersion]bool{}
	for _, r := range all {
		if !groups[r.GroupVersion] {
			groups[r.GroupVersion] = true
			metav1.AddToGroupVersion(scheme, r.GroupVersion)
			if err := scheme.SetVersionPriority(r.GroupVersion); err != nil {
				return nil, err
			}
		}
		scheme.AddKnownTypes(r.GroupVersion, r.newItem(), r.newList())
		scheme.AddKnownTypes(schema.GroupVersion{Group: r.Group, Version: runtime.APIVersionInternal}, r.newItem(), r.newList())
		if err := scheme.AddFieldLabelConversionFunc(r.WithKind(r.kind), r.fieldLabel); err != nil {
			return nil, err
		}
		r.addDefaults(scheme)
	}
	scheme.AddUnversionedTypes(schema.GroupVersion{Version: "v1"}, &metav1.Status{}, &metav1.APIVersions{},
		&metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return scheme, nil
}

// fieldLabel checks the field of a field selector: it returns an error if the resource does not have the field, and
// otherwise label and value unchanged.
func (r resource) fieldLabel(label, value string) (checkedLabel, sameValue string, err error) {
	known := fields.Set{"metadata.name": "", "metadata.namespace": ""}
	if !known.Has(label) && !r.selectable(r.newItem()).Has(label) {
		return "", "", fmt.Errorf("field label not supported: %s", label)
	}
	return label, value, nil
}

// addDefaults registers the defaults of an object and of the items of a list.
func (r resource) addDefaults(scheme *runtime.Scheme) {
	if r.defaults == nil {
		return
	}
	set := func(obj any) { r.defaults(obj.(runtime.Object)) }
	scheme.AddTypeDefaultingFunc(r.newItem(), set)
	scheme.AddTypeDefaultingFunc(r.newList(), func(list any) {
		_ = meta.EachListItem(list.(runtime.Object), func(obj runtime.Object) error { // fails only for a type without items
			r.defaults(obj)
			return nil
		})
	})
}
