package podlist

import (
	"fmt"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// deepest is how many mappings may be in each other: a list in a list is two. It ends
// the walk over a mapping whose alias is in itself.
const deepest = 50

// tree walks over an object that was parsed from YAML.
type tree struct {
	node  *yaml.Node // the value that comes next
	path  []string   // from the root to it
	depth int
	left  int // how far the walk may still go, see walkable
}

var _ values = (*tree)(nil)

// value is the value that comes next: an alias is what it stands for.
func (t *tree) value() *yaml.Node {
	if t.node.Kind == yaml.AliasNode {
		return t.node.Alias
	}
	return t.node
}

func (t *tree) object(field func(name []byte) (read bool, err error)) error {
	node := t.value()
	if t.null() {
		return nil
	}
	if node.Kind != yaml.MappingNode {
		return t.wanted(mapping)
	}
	if t.depth++; t.depth > deepest {
		return fmt.Errorf("%s: more than %d mappings in each other", t.pointer(), deepest)
	}
	defer func() { t.depth-- }()
	for i := 0; i+1 < len(node.Content); i += 2 {
		name := node.Content[i]
		err := t.at(name.Value, node.Content[i+1], func() error {
			if name.ShortTag() == "!!merge" {
				return t.object(field)
			}
			_, err := field([]byte(name.Value))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *tree) array(item func(i int) error) error {
	node := t.value()
	if t.null() {
		return nil
	}
	if node.Kind != yaml.SequenceNode {
		return t.wanted(list)
	}
	for i, content := range node.Content {
		if err := t.at(strconv.Itoa(i), content, func() error { return item(i) }); err != nil {
			return err
		}
	}
	return nil
}

// at does something with a value one step further down.
func (t *tree) at(step string, node *yaml.Node, do func() error) error {
	if err := t.spend(1); err != nil {
		return err
	}
	above := t.node
	t.node, t.path = node, append(t.path, step)
	err := do()
	t.node, t.path = above, t.path[:len(t.path)-1]
	return err
}

func (t *tree) text() ([]byte, error) {
	switch node := t.value(); {
	case t.null():
		return nil, nil
	case node.Kind != yaml.ScalarNode || node.ShortTag() != "!!str":
		return nil, t.wanted(str)
	default:
		return []byte(node.Value), t.spend(len(node.Value))
	}
}

func (t *tree) number(bits int) (n int64, ok bool, err error) {
	node := t.value()
	if t.null() {
		return 0, false, nil
	}
	if tag := node.ShortTag(); node.Kind != yaml.ScalarNode || tag != "!!int" && tag != "!!float" {
		return 0, false, t.wanted(whole)
	}
	n, err = wholeNumber(node.Value, bits)
	if err != nil {
		return 0, false, fmt.Errorf("%s: %w", t.pointer(), err)
	}
	return n, true, nil
}

func (t *tree) null() bool { return t.value().ShortTag() == "!!null" }

func (t *tree) yes() bool { return t.value().ShortTag() == "!!bool" && t.value().Value == "true" }

func (t *tree) next() {}

// spend counts a step of the walk.
func (t *tree) spend(n int) error {
	if t.left -= n; t.left < 0 {
		return errAliases
	}
	return nil
}

// wanted says that the value that comes next is of the wrong type.
func (t *tree) wanted(what string) error {
	node := t.value()
	value := node.Value
	switch {
	case node.Kind == yaml.MappingNode:
		value = mapping
	case node.Kind == yaml.SequenceNode:
		value = list
	case node.ShortTag() == "!!str":
		value = strconv.Quote(value)
	}
	return wrongType(t.pointer(), value, what)
}

// pointer is the path in the form that JSON has for it.
func (t *tree) pointer() string { return "/" + strings.Join(t.path, "/") }
