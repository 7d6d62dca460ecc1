package metrics

// Options configures the names of the series. The zero value uses the kubelet's names.
type Options struct {
	// Namespace is the first part of every series' name; "" means "kubelet". Choose another
	// one if the series must not be shared with a kubelet in the same registry.
	Namespace string
}

// namespace returns Namespace or its default.
func (o Options) namespace() string {
	if o.Namespace == "" {
		return "kubelet"
	}
	return o.Namespace
}
