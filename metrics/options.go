package metrics

// Options configures the names of a handle's series. The zero value gives the names of
// the kubelet.
type Options struct {
	// Namespace is the first part of every series' name, before an underscore; "" means
	// "kubelet", so that dashboards and alerts made for a kubelet go on working. Choose another one for series that must not be shared
	// with those of a kubelet in the same registry.
	Namespace string
}

// namespace returns Namespace or its default.
func (o Options) namespace() string {
	if o.Namespace == "" {
		return "kubelet"
	}
	return o.Namespace
}
