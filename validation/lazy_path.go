package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxDepth is the maximum number of fields below a container: lifecycle, preStop, httpGet,
// path.
const maxDepth = 4

// lazyPath is the path of a value in a spec. fieldPath converts it to a field.Path, which only an
// error or a warning needs: to create one for every value would be most of the cost of checking
// a valid spec. A lazyPath is passed by value, so that it needs no heap allocation.
type lazyPath struct {
	root   *field.Path // the path of the spec; nil: the spec is the root
	list   string      // the list of containers; "": the value is a field of the spec
	index  int         // the index of the container in list
	fields [maxDepth]string
	depth  int
}

// item returns the path of element i of a list of containers in the spec.
func (p lazyPath) item(list string, i int) lazyPath {
	p.list, p.index = list, i
	return p
}

// child returns the path of a field of the value at p. It changes only its own copy of p, because
// fields is an array.
func (p lazyPath) child(name string) lazyPath {
	p.fields[p.depth] = name
	p.depth++
	return p
}

// fieldPath converts p to a field.Path.
func (p lazyPath) fieldPath() *field.Path {
	path := p.root
	if p.list != "" {
		path = path.Child(p.list).Index(p.index)
	}
	for _, name := range p.fields[:p.depth] {
		path = path.Child(name)
	}
	return path
}
