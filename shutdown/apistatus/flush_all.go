package apistatus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/shutdown"
)

// workers is how many pods [Reporter.FlushPods] and [Reporter.MarkReady] write at the
// same time.
const workers = 10

// FlushPods calls [Reporter.FlushPod] for pods, ten at a time, and again where that
// fails in passing. It returns a moment before ctx ends, and names those that are not
// acknowledged in a *[shutdown.UnflushedError]. A nil pod is none.
func (r *Reporter) FlushPods(ctx context.Context, pods []*v1.Pod) error {
	return each(ctx, pods, r.FlushPod)
}

// MarkReady calls [Reporter.MarkNotReady], or [Reporter.RestoreReadiness] with ready,
// as FlushPods does FlushPod.
func (r *Reporter) MarkReady(ctx context.Context, pods []*v1.Pod, ready bool) error {
	if ready {
		return each(ctx, pods, r.RestoreReadiness)
	}
	return each(ctx, pods, r.MarkNotReady)
}

// each writes pods, some at the same time, and waits for all.
func each(ctx context.Context, pods []*v1.Pod, write func(context.Context, *v1.Pod) error) error {
	ctx, cancel := inTime(ctx)
	defer cancel()
	results := make([]error, len(pods))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(workers, len(pods)) {
		wg.Go(func() {
			for i := range next {
				results[i] = retry(ctx, func(ctx context.Context) error { return write(ctx, pods[i]) })
			}
		})
	}
	for i, pod := range pods {
		if pod != nil {
			next <- i
		}
	}
	close(next)
	wg.Wait()
	return unflushed(pods, results)
}

// maxReasons is how many kinds of failures an error tells apart.
const maxReasons = 8

// unflushed names the pods whose result is an error, sorted and each once. Nil: there
// is none.
func unflushed(pods []*v1.Pod, results []error) error {
	var names []types.NamespacedName
	var why reasons
	for i, err := range results {
		if err != nil {
			names = append(names, types.NamespacedName{Namespace: pods[i].Namespace, Name: pods[i].Name})
			why.add(err)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.SortFunc(names, func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return &shutdown.UnflushedError{Pods: slices.Compact(names), Err: why.join()}
}

// reasons are errors of different kinds: 500 pods that find no server fail for one
// reason, and it is said once, by the first of them.
type reasons struct {
	seen   map[string]bool
	first  []error
	hidden int // kinds that are not in first
}

func (r *reasons) add(err error) {
	kind := kindOf(err)
	switch {
	case r.seen[kind]:
		return
	case len(r.first) == maxReasons:
		r.hidden++
	default:
		r.first = append(r.first, err)
	}
	if r.seen == nil {
		r.seen = map[string]bool{}
	}
	r.seen[kind] = true
}

func (r *reasons) join() error {
	if r.hidden > 0 {
		return errors.Join(append(r.first, fmt.Errorf("and %d more kinds of errors", r.hidden))...)
	}
	return errors.Join(r.first...)
}

// kindOf is what errors of one kind have in common, without what is only of one pod
// or one connection: the URL of a request, the port of a socket, the name in an
// answer.
func kindOf(err error) string {
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		return fmt.Sprint(status.ErrStatus.Code, status.ErrStatus.Reason)
	}
	var socket *net.OpError
	if errors.As(err, &socket) {
		return fmt.Sprint(socket.Op, socket.Err)
	}
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err.Error()
	}
	return err.Error()
}
