// Package kubeletconfig reads what decides on a node's shutdown from a kubelet's configuration: a
// file, a file with a folder of drop-ins as --config and --config-dir name them, or what a kubelet's
// /configz answers:
//
//	config, err := kubeletconfig.Load("/var/lib/kubelet/config.yaml", "/etc/kubernetes/kubelet.conf.d")
//	unknown, err := kubeletconfig.SetFeatureGates(gate, config.FeatureGates)
//
// # Concurrency properties
//
// The package has functions only, and no state. SetFeatureGates changes its gate and nothing else.
//
// # Failure modes
//
// A file that cannot be read, is no KubeletConfiguration, or has a bad value in a field that is
// read gives an error that names file, field and value. A misspelled shutdown field is an error too,
// as it is for a kubelet. All other fields are ignored.
//
// # Testing
//
// Load reads real files; a test writes them to t.TempDir.
package kubeletconfig
