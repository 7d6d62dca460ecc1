package staticpod_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/internal/staticpod"
)

// The annotation kubernetes.io/config.source says from which source the kubelet has a pod. A pod is static if it has the
// annotation with another source than "api". A pod is a mirror pod if it has the annotation kubernetes.io/config.mirror.
func TestStaticAndMirror(t *testing.T) {
	for name, test := range map[string]struct {
		annotations    map[string]string
		static, mirror bool
	}{
		"no annotation":   {annotations: nil, static: false, mirror: false},
		"the source api":  {annotations: map[string]string{"kubernetes.io/config.source": "api"}, static: false, mirror: false},
		"the source file": {annotations: map[string]string{"kubernetes.io/config.source": "file"}, static: true, mirror: false},
		"an empty source": {annotations: map[string]string{"kubernetes.io/config.source": ""}, static: true, mirror: false},
		"a mirror pod":    {annotations: map[string]string{"kubernetes.io/config.mirror": "hash"}, static: false, mirror: true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations}}
			require.Equal(t, test.static, staticpod.Is(pod))
			require.Equal(t, test.mirror, staticpod.IsMirror(pod))
		})
	}
}
