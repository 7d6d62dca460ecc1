package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"syscall"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/socket"
)

// ErrRefused is wrapped by the error of a request to which the agent has answered with an error.
var ErrRefused = errors.New("the agent has refused")

// Request sends a request to the agent's socket at path, and decodes the JSON of the answer into answer, a
// pointer. The error wraps fs.ErrNotExist if there is no socket, syscall.ECONNREFUSED if nobody listens on it,
// and [ErrRefused] if the agent has answered with an error.
func Request(ctx context.Context, path, method, resource string, answer any) (err error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+resource, nil)
	if err != nil {
		return err
	}
	response, err := socket.Client(path).Do(req)
	if err != nil {
		var urlError *url.Error // drop its text: http://localhost means nothing to the user
		if errors.As(err, &urlError) {
			err = urlError.Err
		}
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) { // connected, but not answered
			return fmt.Errorf("the agent on %s has ended, or closed the connection, before it answered: %w", path, err)
		}
		return fmt.Errorf("no agent answers on %s (see its --socket): %w", path, err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		failure := Error{Message: response.Status}
		_ = json.NewDecoder(response.Body).Decode(&failure) // if it fails, the message is the status
		return fmt.Errorf("%w: %s", ErrRefused, failure.Message)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}
