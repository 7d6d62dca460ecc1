package staticpod_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/internal/staticpod"
)

// The annotation kubernetes.io/config.source says where the kubelet has a pod from. A pod with another source
// than "api" is static. Only the annotation of a mirror pod makes a mirror pod.
func TestStaticAndMirror(t *testing.T) {
	for name, test := range map[string]struct {
		annotations    map[string]string
		static, mirror bool
	}{
		"none":   {nil, false, false},
		"api":    {map[string]string{"kubernetes.io/config.source": "api"}, false, false},
		"file":   {map[string]string{"kubernetes.io/config.source": "file"}, true, false},
		"empty":  {map[string]string{"kubernetes.io/config.source": ""}, true, false},
		"mirror": {map[string]string{"kubernetes.io/config.mirror": "hash"}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations}}
			require.Equal(t, test.static, staticpod.Is(pod))
			require.Equal(t, test.mirror, staticpod.IsMirror(pod))
		})
	}
}
