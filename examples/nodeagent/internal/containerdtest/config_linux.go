package containerdtest

import (
	"fmt"
	"path/filepath"
)

// pauseName is the image of every sandbox.
const pauseName = "docker.io/local/pause:1"

// configOfServer keeps everything of containerd in one folder. restrict_oom_score_adj
// lets runc work without CAP_SYS_RESOURCE; the native snapshotter needs no file
// system of its own.
func configOfServer(folder string) string {
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
`, filepath.Join(folder, "root"), filepath.Join(folder, "state"), socketIn(folder),
		filepath.Join(folder, "opt"), pauseName, filepath.Join(folder, "cni"))
}

// socketIn has to be short: the path of a socket has 107 characters at most.
func socketIn(folder string) string { return filepath.Join(folder, "containerd.sock") }
