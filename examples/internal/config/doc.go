// Package config reads what the agent needs from a kubelet's own configuration
// file, so that one file serves both:
//
//	cfg, err := config.Load("/var/lib/kubelet/config.yaml")
//	unknown, err := config.SetFeatureGates(gate, cfg.FeatureGates)
//	err = validation.ValidateNodeShutdown(cfg.Shutdown, featuregates.Options(gate))
//
// Four fields of KubeletConfiguration are read: shutdownGracePeriod,
// shutdownGracePeriodCriticalPods, shutdownGracePeriodByPodPriority and
// featureGates. All others are let pass unread.
//
// # Concurrency properties
//
// Functions only, without state. SetFeatureGates changes the gate it is given.
//
// # Failure modes
//
// A file that cannot be read, is no KubeletConfiguration, or has a bad value in
// one of the four fields gives an error that names file, field and value. A field
// that only looks like one of the shutdown fields is an error too: a slip of the
// pen would else switch the feature off without a word.
//
// # Testing
//
// Load reads a real file; a test writes one to t.TempDir.
package config
