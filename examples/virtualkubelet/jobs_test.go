package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// jobService is a fake job service. A job ends stopDelay after it was stopped, regardless of its grace period.
type jobService struct {
	stopDelay time.Duration

	mu     sync.Mutex
	status int // of the response to each request; 0: that of jobs.go
	jobs   map[types.UID]*job
}

// job is the job of a pod.
type job struct {
	pod  *v1.Pod
	ends time.Time // zero: it was not stopped
}

// newJobService returns a service without jobs, in which a job runs for stopDelay after a stop.
func newJobService(stopDelay time.Duration) *jobService {
	return &jobService{stopDelay: stopDelay, jobs: map[types.UID]*job{}}
}

// setStatus sets the status of the response to each request.
func (s *jobService) setStatus(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// ServeHTTP serves the requests of jobs.go one at a time. The handlers below are called with the mutex locked.
func (s *jobService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /jobs/{uid}", s.create)
	mux.HandleFunc("POST /jobs/{uid}/stop", s.stop)
	mux.HandleFunc("GET /jobs", s.list)
	mux.HandleFunc("DELETE /jobs/{uid}", s.remove)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status != 0 {
		w.WriteHeader(s.status)
		return
	}
	mux.ServeHTTP(w, r)
}

// create creates the job of a pod, unless it exists.
func (s *jobService) create(w http.ResponseWriter, r *http.Request) {
	var pod v1.Pod
	if err := json.NewDecoder(r.Body).Decode(&pod); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if s.jobs[pod.UID] == nil {
		s.jobs[pod.UID] = &job{pod: &pod}
	}
}

// stop makes a running job end after stopDelay.
func (s *jobService) stop(w http.ResponseWriter, r *http.Request) {
	if j := s.jobs[types.UID(r.PathValue("uid"))]; j == nil {
		w.WriteHeader(http.StatusNotFound)
	} else if j.ends.IsZero() {
		j.ends = time.Now().Add(s.stopDelay)
	}
}

// list returns the pods of all jobs, with their phases.
func (s *jobService) list(w http.ResponseWriter, _ *http.Request) {
	pods := []*v1.Pod{}
	for _, j := range s.jobs {
		pod := j.pod.DeepCopy()
		pod.Status = v1.PodStatus{Phase: v1.PodRunning}
		if hasEnded := !j.ends.IsZero() && !time.Now().Before(j.ends); hasEnded {
			pod.Status = v1.PodStatus{Phase: v1.PodFailed, Reason: "Stopped"}
		}
		pods = append(pods, pod)
	}
	_ = json.NewEncoder(w).Encode(pods) // if this fails, the client's request fails
}

// remove removes a job.
func (s *jobService) remove(w http.ResponseWriter, r *http.Request) {
	uid := types.UID(r.PathValue("uid"))
	if s.jobs[uid] == nil {
		w.WriteHeader(http.StatusNotFound)
	}
	delete(s.jobs, uid)
}

// The job of a pod is created, stopped and deleted. The provider recognizes two errors: a job that does not exist, and a pod
// that the service will never accept.
func TestJobs(t *testing.T) {
	const stopTakesNoTime = 0
	service := newJobService(stopTakesNoTime)
	server := httptest.NewServer(service)
	defer server.Close()
	j := &jobs{url: server.URL}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "uid"}}
	const grace = 30
	// requirePhases requires that the list has pods of these phases.
	requirePhases := func(want ...v1.PodPhase) {
		t.Helper()
		pods, err := j.Statuses(t.Context())
		require.NoError(t, err)
		var phases []v1.PodPhase
		for _, p := range pods {
			require.Equal(t, pod.ObjectMeta, p.ObjectMeta)
			phases = append(phases, p.Status.Phase)
		}
		require.Equal(t, want, phases)
	}

	// There is no job.
	requirePhases()
	require.ErrorIs(t, j.Stop(t.Context(), pod, grace), lifecycle.ErrContainerNotFound)
	require.ErrorIs(t, j.Delete(t.Context(), pod), lifecycle.ErrContainerNotFound)

	// It is created, stopped and deleted.
	require.NoError(t, j.Create(t.Context(), pod))
	require.NoError(t, j.Create(t.Context(), pod), "a second time, as after an answer that was lost")
	requirePhases(v1.PodRunning)
	require.NoError(t, j.Stop(t.Context(), pod, grace))
	requirePhases(v1.PodFailed)
	require.NoError(t, j.Delete(t.Context(), pod))
	requirePhases()

	// The service refuses the pod, and then fails.
	service.setStatus(http.StatusUnprocessableEntity)
	require.True(t, errdefs.IsInvalidInput(j.Create(t.Context(), pod)))
	service.setStatus(http.StatusInternalServerError)
	require.ErrorContains(t, j.Create(t.Context(), pod), "500")
}
