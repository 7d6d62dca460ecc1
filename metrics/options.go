package metrics

// DefaultNamespace is the first part of every series' name when [Options.Namespace] is
// empty. It is the kubelet's, so that dashboards and alerts made for it keep working.
const DefaultNamespace = "kubelet"

// Options configures the names of a handle's series. The zero value gives the names of
// the kubelet.
type Options struct {
	// Namespace is the first part of every series' name, before an underscore; ""
	// means [DefaultNamespace]. Choose another one for series that must not be shared
	// with those of a kubelet in the same registry.
	Namespace string
}

// namespace returns Namespace or its default.
func (o Options) namespace() string {
	if o.Namespace == "" {
		return DefaultNamespace
	}
	return o.Namespace
}
