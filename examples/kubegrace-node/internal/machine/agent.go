package machine

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"syscall"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
)

// lookAtAgent asks kubegrace-node for its status on its socket, which only root may open. A missing socket
// means that no agent runs, because systemd removes the folder of the socket when the agent ends.
func (s *State) lookAtAgent(ctx context.Context, path string) {
	var status api.Status
	err := api.Request(ctx, path, http.MethodGet, "/status", &status)
	switch {
	case err == nil:
		s.Agent = &status
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED): // no agent runs, or it has no socket
	default:
		s.miss("kubegrace-node", err, "")
	}
}

// agentsFile returns the logind drop-in that an agent with kubegrace has written; nil: there is none.
func (s *State) agentsFile() *LimitFile {
	for i := range s.LimitFiles {
		if s.LimitFiles[i].Writer == "kubegrace" {
			return &s.LimitFiles[i]
		}
	}
	return nil
}
