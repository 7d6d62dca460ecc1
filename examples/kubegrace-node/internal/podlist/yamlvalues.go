package podlist

import (
	"fmt"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// maxDepth is how many mappings may be nested. It ends the walk over a mapping that contains
// an alias to itself.
const maxDepth = 50

// yamlValues walks over an object that was parsed from YAML.
type yamlValues struct {
	node   *yaml.Node // the next value
	path   []string   // from the root to node
	depth  int        // the number of mappings around node
	budget int        // the steps that are left, see walkBudget
}

var _ values = (*yamlValues)(nil)

// value returns the next value. For an alias it returns the value that the alias stands for.
func (v *yamlValues) value() *yaml.Node {
	if v.node.Kind == yaml.AliasNode {
		return v.node.Alias
	}
	return v.node
}

func (v *yamlValues) eachField(field func(name []byte) (read bool, err error)) error {
	node := v.value()
	if v.isNull() {
		return nil
	}
	if node.Kind != yaml.MappingNode {
		return v.typeError(typeMapping)
	}
	if v.depth++; v.depth > maxDepth {
		return fmt.Errorf("%s: more than %d mappings in each other", v.pointer(), maxDepth)
	}
	defer func() { v.depth-- }()
	for i := 0; i+1 < len(node.Content); i += 2 {
		name := node.Content[i]
		err := v.descend(name.Value, node.Content[i+1], func() error {
			if name.ShortTag() == "!!merge" {
				return v.eachField(field)
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

func (v *yamlValues) eachItem(item func(i int) error) error {
	node := v.value()
	if v.isNull() {
		return nil
	}
	if node.Kind != yaml.SequenceNode {
		return v.typeError(typeList)
	}
	for i, content := range node.Content {
		if err := v.descend(strconv.Itoa(i), content, func() error { return item(i) }); err != nil {
			return err
		}
	}
	return nil
}

// descend calls do while the next value is node, a child of the value that was next before.
// step is the key or the index of node.
func (v *yamlValues) descend(step string, node *yaml.Node, do func() error) error {
	if err := v.spend(1); err != nil {
		return err
	}
	parent := v.node
	v.node, v.path = node, append(v.path, step)
	err := do()
	v.node, v.path = parent, v.path[:len(v.path)-1]
	return err
}

func (v *yamlValues) text() ([]byte, error) {
	switch node := v.value(); {
	case v.isNull():
		return nil, nil
	case node.Kind != yaml.ScalarNode || node.ShortTag() != "!!str":
		return nil, v.typeError(typeString)
	default:
		return []byte(node.Value), v.spend(len(node.Value))
	}
}

func (v *yamlValues) number(bits int) (n int64, ok bool, err error) {
	node := v.value()
	if v.isNull() {
		return 0, false, nil
	}
	if tag := node.ShortTag(); node.Kind != yaml.ScalarNode || tag != "!!int" && tag != "!!float" {
		return 0, false, v.typeError(typeWhole)
	}
	n, err = wholeNumber(node.Value, bits)
	if err != nil {
		return 0, false, fmt.Errorf("%s: %w", v.pointer(), err)
	}
	return n, true, nil
}

func (v *yamlValues) isNull() bool { return v.value().ShortTag() == "!!null" }

func (v *yamlValues) isTrue() bool {
	return v.value().ShortTag() == "!!bool" && v.value().Value == "true"
}

func (v *yamlValues) objectDone() {} // splitObjects limits the size

// spend takes n steps from the budget of the walk.
func (v *yamlValues) spend(n int) error {
	if v.budget -= n; v.budget < 0 {
		return errAliases
	}
	return nil
}

// typeError returns an error that says which type the next value must have.
func (v *yamlValues) typeError(wanted string) error {
	node := v.value()
	value := node.Value
	switch {
	case node.Kind == yaml.MappingNode:
		value = typeMapping
	case node.Kind == yaml.SequenceNode:
		value = typeList
	case node.ShortTag() == "!!str":
		value = strconv.Quote(value)
	}
	return typeError(v.pointer(), value, wanted)
}

// pointer returns the path as a JSON pointer.
func (v *yamlValues) pointer() string { return "/" + strings.Join(v.path, "/") }
