// Package kubeletconfig reads the shutdown settings of a kubelet's configuration. The configuration is a
// file, a folder of drop-ins, or both, as the kubelet's flags --config and --config-dir name them. The
// file may also contain the answer of a kubelet's /configz:
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
// It is an error if a file cannot be read, if it is no KubeletConfiguration, or if a field that is used
// has a bad value. The error names the file, the field and the value. A misspelled shutdown field is an
// error too, as it is for a kubelet. All other fields are ignored.
//
// # Testing
//
// Load reads real files, which the tests write to t.TempDir.
package kubeletconfig
