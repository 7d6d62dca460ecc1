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

// jobService is a fake job service. A job ends by itself after lasts, if that is set, and else a
// while after it was stopped, whatever its grace period is.
type jobService struct {
	runsOn time.Duration               // how long jobs run after a stop
	lasts  func(*v1.Pod) time.Duration // nil: no job ends by itself
	loses  bool                        // of three DELETEs one is forgotten and one is not answered, as is one PUT of four

	mu      sync.Mutex
	broken  bool // it answers 500
	jobs    map[types.UID]*job
	created map[types.UID]int
	deletes int
	lists   int
	cut     []types.UID // that ran when they were deleted
}

type job struct {
	pod     *v1.Pod
	stopped bool
	ends    time.Time // zero: it does not
}

func newJobService(runsOn time.Duration) *jobService {
	return &jobService{runsOn: runsOn, jobs: map[types.UID]*job{}, created: map[types.UID]int{}}
}

func (j *job) runs() bool { return j.ends.IsZero() || time.Now().Before(j.ends) }

// runs reports whether there is a job that runs.
func (s *jobService) runs(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[uid]
	return j != nil && j.runs()
}

// setBroken makes it answer 500, or no longer.
func (s *jobService) setBroken(broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = broken
}

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
	if s.lasts != nil && s.lasts(&pod) > 0 {
		j.ends = time.Now().Add(s.lasts(&pod))
	}
	s.jobs[pod.UID] = j
	s.created[pod.UID]++
	if s.loses && len(s.created)%4 == 2 {
		panic(http.ErrAbortHandler)
	}
}

func (s *jobService) stop(w http.ResponseWriter, r *http.Request) {
	j := s.jobs[types.UID(r.PathValue("uid"))]
	switch {
	case j == nil:
		w.WriteHeader(http.StatusNotFound)
	case !j.stopped && j.runs():
		j.stopped, j.ends = true, time.Now().Add(s.runsOn)
	}
}

func (s *jobService) list(w http.ResponseWriter, _ *http.Request) {
	s.lists++
	pods := []*v1.Pod{}
	for _, j := range s.jobs {
		pod := j.pod.DeepCopy()
		switch {
		case j.runs():
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

func (s *jobService) remove(w http.ResponseWriter, r *http.Request) {
	uid := types.UID(r.PathValue("uid"))
	if s.deletes++; s.loses && s.deletes%3 == 1 {
		return
	}
	if j := s.jobs[uid]; j == nil {
		w.WriteHeader(http.StatusNotFound)
	} else if j.runs() {
		s.cut = append(s.cut, uid)
	}
	delete(s.jobs, uid)
	if s.loses && s.deletes%3 == 2 {
		panic(http.ErrAbortHandler)
	}
}
