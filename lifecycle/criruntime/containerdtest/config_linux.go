package containerdtest

import (
	"fmt"
	"path/filepath"
)

// pauseName is the name of the image that containerd runs as the sandbox of each pod.
const pauseName = "docker.io/local/pause:1"

// containerdConfig returns a configuration file that keeps all of containerd's files in one folder.
// restrict_oom_score_adj lets runc work without CAP_SYS_RESOURCE, which a test container may lack. The native
// snapshotter works on any file system.
func containerdConfig(folder string) string {
	return fmt.Sprintf(`version = 2
root = %q
state = %q
[grpc]
  address = %q
[plugins."io.containerd.internal.v1.opt"]
  path = %q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    conf_dir = %q
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
`, filepath.Join(folder, "root"), filepath.Join(folder, "state"), socketPath(folder),
		filepath.Join(folder, "opt"), pauseName, filepath.Join(folder, "cni"))
}

// socketPath returns the path of containerd's socket. Linux limits it to 107 characters.
func socketPath(folder string) string { return filepath.Join(folder, "containerd.sock") }
