package metrics

import (
	"fmt"
	"regexp"
)

// Options configures the names of the series. The zero value uses the kubelet's names.
type Options struct {
	// Namespace is the first part of every series' name; "" means "kubelet". Choose another
	// one if the series must not be shared with a kubelet in the same registry. It must consist of
	// letters, digits, underscores and colons, and not begin with a digit; anything else is an error.
	Namespace string
}

// namespace returns Namespace or its default.
func (o Options) namespace() string {
	if o.Namespace == "" {
		return "kubelet"
	}
	return o.Namespace
}

// validate returns an error for a Namespace with other characters: PromQL would need quotes for the names of the series, and
// most scrapers would change them.
func (o Options) validate() error {
	if isName := regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`).MatchString(o.namespace()); !isName {
		return fmt.Errorf("Options.Namespace %q: must consist of letters, digits, underscores and colons, and not begin with a digit", o.Namespace)
	}
	return nil
}
