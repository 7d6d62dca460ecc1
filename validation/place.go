package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// deepest is how many fields lie between a container and a value that is looked
// at: lifecycle, preStop, httpGet, path.
const deepest = 4

// place is where a value stands in a spec. It only becomes a path when something
// is wrong, because paths are most of what a valid spec would cost; and it is
// handed on by value, because a pointer to the place around it would escape.
type place struct {
	root   *field.Path // of the spec; nil: the spec is the root
	list   string      // of the containers; "": it is a field of the spec itself
	index  int         // of the container
	fields [deepest]string
	depth  int
}

// item is element i of the list name of the spec.
func (p place) item(name string, i int) place {
	p.list, p.index = name, i
	return p
}

// child is the field name of the value at p, at most deepest times in a chain.
func (p place) child(name string) place {
	p.fields[p.depth] = name
	p.depth++
	return p
}

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
