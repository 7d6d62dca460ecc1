package command

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/api"
)

func newStop(t *tool) *cobra.Command {
	var seconds int32
	c := &cobra.Command{
		Use:   "stop [NAMESPACE/]POD",
		Short: "Has the running agent stop one pod, with its hooks and its grace period",
		Long: `stop tells the agent to stop one pod, and waits until it has stopped. It stays stopped
until its manifest changes, or the agent is started again. Ctrl-C ends the
waiting; the pod is stopped all the same.`,
		Args: cobra.ExactArgs(1),
	}
	t.addSocket(c.Flags())
	c.Flags().Int32Var(&seconds, "grace-period", -1, "`seconds` that the pod is given; less than 0 means its own terminationGracePeriodSeconds")
	c.RunE = t.interruptible(func(ctx context.Context, args []string) error {
		query := url.Values{"pod": args}
		if seconds >= 0 {
			query.Set("seconds", strconv.Itoa(int(seconds)))
		}
		var pod api.Pod
		if err := t.request(ctx, http.MethodPost, "/stop?"+query.Encode(), &pod); err != nil {
			return err
		}
		_, err := fmt.Fprintf(t.out, "%s/%s %s\n", pod.Namespace, pod.Name, pod.Doing)
		return err
	})
	return c
}
