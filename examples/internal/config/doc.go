// Package config reads the settings of the graceful node shutdown from a kubelet's
// configuration file, so that one file serves the kubelet and the examples:
//
//	cfg, err := config.Load("/var/lib/kubelet/config.yaml")
//	unknown, err := config.SetFeatureGates(gate, cfg.FeatureGates)
//	err = validation.ValidateNodeShutdown(cfg.Shutdown, featuregates.Options(gate))
//
// Seven fields of KubeletConfiguration are read: shutdownGracePeriod,
// shutdownGracePeriodCriticalPods, shutdownGracePeriodByPodPriority, featureGates,
// staticPodPath and readOnlyPort. All others are ignored.
//
// # Concurrency properties
//
// The package has functions only, and no state. SetFeatureGates changes its gate and nothing
// else.
//
// # Failure modes
//
// A file that cannot be read, is no KubeletConfiguration, or has a bad value in
// one of these fields gives an error that names file, field and value. A misspelled
// shutdown field is an error too, because ignoring it would switch the graceful node
// shutdown off silently.
//
// # Testing
//
// Load reads a real file; a test writes one to t.TempDir.
package config
