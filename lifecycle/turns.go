package lifecycle

// turns is the order in which the containers of a pod stop: sidecars after all main
// containers, and after every sidecar that is declared later. In the kubelet a sidecar waits
// only for the next one, which is the same if all of them run. Only containers that are
// being stopped are waited for, so that one that does not run holds up no other (k/k#125880).
type turns struct {
	mains    int   // main containers that are being stopped
	sidecars []int // how many containers are being stopped, by role
	waiting  map[role][]*calls
}

// enter adds a container that is being stopped.
func (t *turns) enter(r role) {
	if r == roleMain {
		t.mains++
	}
	if r < roleFirstSidecar {
		return
	}
	for len(t.sidecars) <= int(r) {
		t.sidecars = append(t.sidecars, 0)
	}
	t.sidecars[r]++
}

// leave removes a container that has ended, and wakes those whose turn has come.
func (t *turns) leave(r role) {
	if r == roleMain {
		t.mains--
	}
	if r >= roleFirstSidecar {
		t.sidecars[r]--
	}
	for n := len(t.sidecars); n > 0 && t.sidecars[n-1] == 0; n-- {
		t.sidecars = t.sidecars[:n-1]
	}
	if next := role(len(t.sidecars)) - 1; next >= roleFirstSidecar && t.mains == 0 {
		for _, c := range t.waiting[next] {
			c.wakeLocked()
		}
		delete(t.waiting, next)
	}
}

// mustWait reports whether a container of a role has to wait for another one to end.
func (t *turns) mustWait(r role) bool {
	return r >= roleFirstSidecar && (t.mains > 0 || int(r) < len(t.sidecars)-1)
}

// wakeInTurn wakes c when the turn of a role may have come.
func (t *turns) wakeInTurn(r role, c *calls) {
	if t.waiting == nil {
		t.waiting = map[role][]*calls{}
	}
	t.waiting[r] = append(t.waiting[r], c)
}
