package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxDepth is the largest number of fields from a container down to a value that is
// checked: lifecycle, preStop, httpGet, path.
const maxDepth = 4

// place is the position of a value in a spec. It becomes a field.Path only for an error or
// a warning, because making paths would be most of the cost of a valid spec. It is passed
// by value, because a pointer to the place of the parent would escape to the heap.
type place struct {
	root   *field.Path // of the spec; nil: the spec is the root
	list   string      // of the containers; "": the value is a field of the spec itself
	index  int         // of the container
	fields [maxDepth]string
	depth  int
}

// item returns the place of element i of the list name in the spec.
func (p place) item(name string, i int) place {
	p.list, p.index = name, i
	return p
}

// child returns the place of the field name of the value at p. A chain of calls has at
// most maxDepth of them.
func (p place) child(name string) place {
	p.fields[p.depth] = name
	p.depth++
	return p
}

// path returns the place as the path that errors have.
func (p place) path() *field.Path {
	path := p.root
	if p.list != "" {
		path = path.Child(p.list).Index(p.index)
	}
	for _, name := range p.fields[:p.depth] {
		path = path.Child(name)
	}
	return path
}
