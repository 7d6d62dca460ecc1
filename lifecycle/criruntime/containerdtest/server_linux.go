package containerdtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/internal/need"
)

const (
	startTimeout   = 60 * time.Second // for containerd, and for the import of images
	cleanUpTimeout = 60 * time.Second // for removing a test's pods
)

// downTime is how long containerd is down after [Server.Kill].
const downTime = 2 * time.Second

// Server is a containerd that belongs to one test.
type Server struct {
	folder  string
	ctr     string
	shell   int             // PID of the shell that runs containerd
	alive   context.Context // ends when the shell exits
	runtime runtimeapi.RuntimeServiceClient
	exits   exitRecorder
}

// Start starts the Debian package's containerd with the images. It runs until the end of the test.
func Start(t testing.TB, images ...Image) *Server {
	t.Helper()
	return Build{}.Start(t, images...)
}

// Start starts the build's containerd with the images. It runs until the end of the test.
func (b Build) Start(t testing.TB, images ...Image) *Server {
	t.Helper()
	need.Root(t)
	containerd := need.Program(t, filepath.Join(b.folder, "containerd"), "containerd")
	need.Program(t, "runc", "runc")
	busybox := need.Program(t, "busybox", "busybox-static")
	folder, err := os.MkdirTemp("", "containerd") // the path of t.TempDir is too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(folder)) })

	s := &Server{folder: folder, ctr: need.Program(t, "ctr", "containerd")}
	s.run(t, containerd, b.environment())
	s.connect(t)
	s.load(t, busybox, append(images, pauseImage()))
	s.recordExits(t)
	return s
}

// Socket returns the path of containerd's socket.
func (s *Server) Socket() string { return socketPath(s.folder) }

// Endpoint returns the endpoint for criruntime.Dial.
func (s *Server) Endpoint() string { return "unix://" + s.Socket() }

// Runtime returns a plain CRI client, with which a test checks containerd's state.
func (s *Server) Runtime() runtimeapi.RuntimeServiceClient { return s.runtime }

// run starts containerd in new PID and mount namespaces, so that none of its processes outlives the test. The
// first process of the PID namespace is a shell. When the shell is killed, the kernel kills containerd,
// all shims and all containers, and Wait returns when they are gone.
//
// If containerd was killed (exit status 137), the shell restarts it after downTime. If containerd ended
// otherwise, the shell exits. /run is a new tmpfs, because shims put their sockets there.
func (s *Server) run(t testing.TB, containerd string, environment []string) {
	t.Helper()
	config := filepath.Join(s.folder, "config.toml")
	require.NoError(t, os.WriteFile(config, []byte(containerdConfig(s.folder)), 0o600))
	const script = `mount --make-rprivate / && mount -t proc proc /proc && mount -t tmpfs tmpfs /run &&
		while :; do "$0" "$@"; [ $? = 137 ] || exit; sleep "$DOWN_TIME"; done`
	process := exec.Command("/bin/sh", "-c", script, containerd, "--config", config)
	process.Env = append(environment, fmt.Sprintf("DOWN_TIME=%v", downTime.Seconds()))
	process.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL,
	}
	log, err := os.Create(s.log())
	require.NoError(t, err)
	process.Stdout, process.Stderr = log, log
	require.NoError(t, process.Start())
	require.NoError(t, log.Close())

	s.shell = process.Process.Pid
	alive, cancelAlive := context.WithCancel(t.Context())
	s.alive = alive
	shellExited := make(chan struct{})
	go func() {
		defer close(shellExited)
		_ = process.Wait() // fails: the cleanup kills it
		cancelAlive()
	}()
	t.Cleanup(func() {
		_ = process.Process.Kill() // fails if it has exited
		<-shellExited
	})
}

// Kill kills containerd with SIGKILL, as a crash would. Shims and containers keep running; containerd restarts
// after 2 s.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", s.shell, s.shell))
	require.NoError(t, err)
	killed := false
	for child := range strings.FieldsSeq(string(children)) {
		name, err := os.ReadFile(filepath.Join("/proc", child, "comm"))
		require.NoError(t, err)
		if strings.TrimSpace(string(name)) != "containerd" {
			continue // a shim, whose parent has died
		}
		pid, err := strconv.Atoi(child)
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		killed = true
	}
	require.True(t, killed, "no containerd runs under the shell")
}

// log returns the path of containerd's output.
func (s *Server) log() string { return filepath.Join(s.folder, "log") }

// connect waits until containerd answers. If containerd exits instead, the test fails.
func (s *Server) connect(t testing.TB) {
	t.Helper()
	conn, err := grpc.NewClient(s.Endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	s.runtime = runtimeapi.NewRuntimeServiceClient(conn)

	ctx, cancel := context.WithTimeout(s.alive, startTimeout)
	defer cancel()
	if _, err := s.runtime.Version(ctx, &runtimeapi.VersionRequest{}); err != nil {
		log, _ := os.ReadFile(s.log()) // if it cannot be read, err is still printed
		require.NoErrorf(t, err, "containerd does not answer; its output:\n%s", log)
	}
	t.Cleanup(func() { require.NoError(t, s.removePods(context.WithoutCancel(t.Context()))) })
}

// load builds the images and imports them into containerd, which then needs no registry.
func (s *Server) load(t testing.TB, busybox string, images []Image) {
	t.Helper()
	content, err := imageArchive(busybox, images)
	require.NoError(t, err)
	file := filepath.Join(s.folder, "images.tar")
	require.NoError(t, os.WriteFile(file, content, 0o600))
	ctx, cancel := context.WithTimeout(s.alive, startTimeout)
	defer cancel()
	out, err := s.command(ctx, "images", "import", "--snapshotter", "native", file).CombinedOutput()
	require.NoErrorf(t, err, "failed to load images: %s", out)
}

// command returns a command of ctr, containerd's client, in the namespace where CRI keeps its containers.
func (s *Server) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, s.ctr, append([]string{"--address", s.Socket(), "--namespace", "k8s.io"}, args...)...)
}

// removePods removes all pods at the end of the test, because the kernel does not remove their cgroups
// with the server's namespaces.
func (s *Server) removePods(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cleanUpTimeout)
	defer cancel()
	list, err := s.runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return fmt.Errorf("failed to list the remaining pods: %w", err)
	}
	for _, pod := range list.GetItems() {
		if _, err := s.runtime.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: pod.GetId()}); err != nil {
			return fmt.Errorf("failed to stop the remaining pod %q: %w", pod.GetMetadata().GetName(), err)
		}
		if _, err := s.runtime.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: pod.GetId()}); err != nil {
			return fmt.Errorf("failed to remove the remaining pod %q: %w", pod.GetMetadata().GetName(), err)
		}
	}
	return nil
}
