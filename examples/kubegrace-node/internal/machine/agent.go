package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"syscall"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/socket"
)

// maxStatus bounds the answer of an agent.
const maxStatus = 1 << 20

// lookAtAgent asks kubegrace-node on its socket, which is root's alone. Without the socket there is no agent: systemd
// removes its folder when the agent ends.
func (s *State) lookAtAgent(ctx context.Context, path string) {
	status, err := askAgent(ctx, path)
	switch {
	case err == nil:
		s.Agent = status
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED): // no agent runs, or it has no socket
	default:
		s.miss("kubegrace-node", err, "")
	}
}

// agentsFile returns the drop-in that an agent with kubegrace has written; nil: there is none.
func (s *State) agentsFile() *LimitFile {
	for i := range s.LimitFiles {
		if s.LimitFiles[i].Writer == "kubegrace" {
			return &s.LimitFiles[i]
		}
	}
	return nil
}

func askAgent(ctx context.Context, path string) (status *api.Status, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/status", nil)
	if err != nil {
		return nil, err
	}
	response, err := socket.Client(path).Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: answers %s", path, response.Status)
	}
	status = &api.Status{}
	if err := json.NewDecoder(http.MaxBytesReader(nil, response.Body, maxStatus)).Decode(status); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return status, nil
}
