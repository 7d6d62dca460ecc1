package metrics

// DefaultNamespace is the prefix of every series when [Options.Namespace] is
// empty: the kubelet's, so that dashboards and alerts made for it keep working.
const DefaultNamespace = "kubelet"

// Options says how the collectors of a handle are named. The zero value is the
// kubelet's naming.
type Options struct {
	// Namespace prefixes every series; "" means [DefaultNamespace]. An embedder
	// that runs beside a kubelet in one registry chooses its own.
	Namespace string
}

// prefix is the namespace with its default.
func (o Options) prefix() string {
	if o.Namespace == "" {
		return DefaultNamespace
	}
	return o.Namespace
}
