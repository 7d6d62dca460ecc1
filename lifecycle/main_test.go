package lifecycle_test

import (
	"testing"

	"k8s.io/klog/v2"
)

// TestMain silences klog.
func TestMain(m *testing.M) {
	klog.SetLogger(klog.Logger{})
	m.Run()
}
