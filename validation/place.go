package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxDepth is the maximum number of fields below a container: lifecycle, preStop, httpGet,
// path.
const maxDepth = 4

// place is the position of a value in a spec. path converts it to a field.Path, which only an
// error or a warning needs: to create one for every value would be most of the cost of checking
// a valid spec. A place is passed by value, so that it needs no heap allocation.
type place struct {
	root   *field.Path // the path of the spec; nil: the spec is the root
	list   string      // the list of containers; "": the value is a field of the spec
	index  int         // the index of the container in list
	fields [maxDepth]string
	depth  int
}

// item returns the place of element i of a list in the spec.
func (p place) item(name string, i int) place {
	p.list, p.index = name, i
	return p
}

// child returns the place of a field of the value at p. It changes only its own copy of p, because
// fields is an array.
func (p place) child(name string) place {
	p.fields[p.depth] = name
	p.depth++
	return p
}

// path converts the place to a field.Path.
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
