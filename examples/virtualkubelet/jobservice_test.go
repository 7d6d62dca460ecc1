//go:build unix

package main

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// jobService is a fake job service. A job ends after duration, if that is set, and otherwise stopDelay after it was
// stopped, regardless of its grace period.
type jobService struct {
	stopDelay time.Duration               // how long jobs run after a stop
	duration  func(*v1.Pod) time.Duration // nil or 0: jobs run until they are stopped

	mu                  sync.Mutex
	broken              bool // respond with 500
	jobs                map[types.UID]*job
	created             map[types.UID]int // how often each job was created
	deletedWhileRunning []types.UID
}

// job is the job of a pod.
type job struct {
	pod     *v1.Pod
	stopped bool      // a stop was requested
	ends    time.Time // zero: runs until it is stopped
}

// newJobService returns a service without jobs, in which a job runs for stopDelay after a stop.
func newJobService(stopDelay time.Duration) *jobService {
	return &jobService{stopDelay: stopDelay, jobs: map[types.UID]*job{}, created: map[types.UID]int{}}
}

// isRunning reports whether the job has not ended.
func (j *job) isRunning() bool { return j.ends.IsZero() || time.Now().Before(j.ends) }

// isRunning reports whether the job of a pod is running.
func (s *jobService) isRunning(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[uid]
	return j != nil && j.isRunning()
}

// setBroken turns the responses with 500 on or off.
func (s *jobService) setBroken(broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = broken
}

// ServeHTTP serves the requests of jobs.go one at a time. The handlers below are called with the mutex.
func (s *jobService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /jobs/{uid}", s.create)
	mux.HandleFunc("POST /jobs/{uid}/stop", s.stop)
	mux.HandleFunc("GET /jobs", s.list)
	mux.HandleFunc("DELETE /jobs/{uid}", s.remove)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		w.WriteHeader(http.StatusInternalServerError)
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
	if s.jobs[pod.UID] != nil {
		return
	}
	j := &job{pod: &pod}
	if s.duration != nil && s.duration(&pod) > 0 {
		j.ends = time.Now().Add(s.duration(&pod))
	}
	s.jobs[pod.UID] = j
	s.created[pod.UID]++
}

// stop makes a running job end after stopDelay.
func (s *jobService) stop(w http.ResponseWriter, r *http.Request) {
	j := s.jobs[types.UID(r.PathValue("uid"))]
	switch {
	case j == nil:
		w.WriteHeader(http.StatusNotFound)
	case !j.stopped && j.isRunning():
		j.stopped, j.ends = true, time.Now().Add(s.stopDelay)
	}
}

// list returns the pods of all jobs, with their phases.
func (s *jobService) list(w http.ResponseWriter, _ *http.Request) {
	pods := []*v1.Pod{}
	for _, j := range s.jobs {
		pod := j.pod.DeepCopy()
		switch {
		case j.isRunning():
			pod.Status = v1.PodStatus{Phase: v1.PodRunning}
		case j.stopped:
			pod.Status = v1.PodStatus{Phase: v1.PodFailed, Reason: "Stopped"}
		default:
			pod.Status = v1.PodStatus{Phase: v1.PodSucceeded}
		}
		pods = append(pods, pod)
	}
	_ = json.NewEncoder(w).Encode(pods)
}

// remove removes a job.
func (s *jobService) remove(w http.ResponseWriter, r *http.Request) {
	uid := types.UID(r.PathValue("uid"))
	if j := s.jobs[uid]; j == nil {
		w.WriteHeader(http.StatusNotFound)
	} else if j.isRunning() {
		s.deletedWhileRunning = append(s.deletedWhileRunning, uid)
	}
	delete(s.jobs, uid)
}
