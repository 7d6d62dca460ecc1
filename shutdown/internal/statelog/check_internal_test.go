package statelog

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// at returns the time that is this many seconds after the boot.
func at(seconds int) time.Time { return bootTime().Add(time.Duration(seconds) * time.Second) }

// now returns the present of these tests, an hour after the boot.
func now() time.Time { return at(3600) }

// fill sets all exported fields of a struct to non-zero values, and also the fields of the structs in it.
func fill(t testing.TB, v reflect.Value) {
	t.Helper()
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(at(3000)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(t, v.Field(i))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0))
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(5)
	case reflect.Float64:
		v.SetFloat(5)
	default:
		t.Fatalf("a field of kind %v: say here how it is filled", v.Kind())
	}
}

// requireFilled fails the test if an exported field of a struct has its zero value, such as a new field that neither fill nor
// its caller sets.
func requireFilled(t testing.TB, v reflect.Value) {
	t.Helper()
	for i := range v.NumField() {
		if field := v.Type().Field(i); field.IsExported() {
			require.False(t, v.Field(i).IsZero(), "%s.%s", v.Type(), field.Name)
		}
	}
}

// wholeObject returns a pod with every field that the log stores, and some that it does not.
func wholeObject() *v1.Pod {
	grace, always, deleted := int64(7), v1.ContainerRestartPolicyAlways, metav1.NewTime(time.Date(2026, 9, 30, 12, 0, 0, 0, time.Local))
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "text", Name: "text", UID: "text", Generation: 3,
			Annotations: map[string]string{
				"kubernetes.io/config.source": "file", "kubernetes.io/config.hash": "1", "kubernetes.io/config.mirror": "2", "a": "not stored",
			},
			DeletionTimestamp: &deleted, DeletionGracePeriodSeconds: &grace,
			Labels: map[string]string{"not": "stored"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "not stored"}},
		},
		Spec: v1.PodSpec{
			RestartPolicy: v1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace, NodeName: "not stored",
			InitContainers: []v1.Container{{Name: "init", RestartPolicy: &always, Image: "not stored"}},
			Containers: []v1.Container{{
				Name: "main", Image: "not stored", Ports: []v1.ContainerPort{{Name: "http", ContainerPort: 80}},
				Lifecycle: &v1.Lifecycle{
					PreStop:   &v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{Port: intstr.FromString("http")}},
					PostStart: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"not stored"}}},
				},
			}},
			EphemeralContainers: []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug", Image: "not stored"}}},
		},
		Status: v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{{Name: "main", ContainerID: "x://1"}}},
	}
}

// wholePod returns a pod with every field set.
func wholePod(t testing.TB) *node.Pod {
	p := &node.Pod{}
	p.Object, p.Status = &v1.Pod{}, &v1.PodStatus{Phase: v1.PodFailed}
	v := reflect.ValueOf(p).Elem()
	for i := range v.NumField() {
		if field := v.Type().Field(i); field.IsExported() && field.Type.Kind() != reflect.Pointer {
			fill(t, v.Field(i))
		}
	}
	p.Object, p.Policy, p.GrantedSeconds, p.Deadline, p.Ended = wholeObject(), node.LeaveAsIs, 20, at(3010), at(3020)
	requireFilled(t, v)
	return p
}

// table returns a timetable of buckets of 20 s and 10 s, of a host that waits 30 s.
func table() *timetable.Table {
	return timetable.New(timetable.Request{
		Schedule: plan.Schedule{{Seconds: 20}, {Priority: 10, Seconds: 10}}, Received: at(3000), HostEnd: at(3030),
	})
}

// wholeShutdown returns a shutdown with every field set but Cancelled.
func wholeShutdown(t testing.TB) *node.Shutdown {
	s := &node.Shutdown{}
	v := reflect.ValueOf(s).Elem()
	fill(t, v)
	requireFilled(t, v)
	s.DoneBuckets, s.Timetable, s.Cancelled = 1, table(), false
	return s
}

// Every exported field is stored, except for the fields of the pod's Object that wholeObject sets to "not stored". A shutdown
// cannot have all fields: one that is cancelled has no announcements.
func TestAllFieldsAreStored(t *testing.T) {
	p, s := wholePod(t), wholeShutdown(t)
	cancelled := wholeShutdown(t)
	cancelled.Cancelled, cancelled.Announced = true, nil
	for _, whole := range []*node.Shutdown{s, cancelled} {
		text := logOf(t, whole, p)
		require.NotContains(t, string(text), "not stored")
		found := parse(text, bootOfLog, now())
		require.Empty(t, found.Errs)
		want, object := wholePod(t), wholeObject()
		object.Labels, object.ManagedFields, object.Spec.NodeName = nil, nil, ""
		delete(object.Annotations, "a")
		object.Spec.Containers[0].Lifecycle.PostStart = nil
		object.Spec.InitContainers[0].Image, object.Spec.Containers[0].Image, object.Spec.EphemeralContainers[0].Image = "", "", ""
		want.Object = object // without what is not stored
		require.Equal(t, node.Entries{Shutdown: whole, Pods: []*node.Pod{want}}, found.Entries)
	}
}

// A log has a pod, and a shutdown with a value that no agent writes. The shutdown is named by an error and left out. The pod
// counts, because its final status may be pending. Times begin with the boot, 00:00:00: the present is 01:00:00, and
// undamaged values are around 00:50:00 (3000 s).
func TestADamagedShutdownIsLeftOut(t *testing.T) {
	for named, damage := range map[string]func(s *node.Shutdown){
		"number -1 is not from 1 to 2147483647":                                                                               func(s *node.Shutdown) { s.Number = -1 },
		"number 2147483648 is not from 1 to 2147483647":                                                                       func(s *node.Shutdown) { s.Number = math.MaxInt32 + 1 },
		"began 1970-01-01T01:00:01Z is not from 1970-01-01T00:00:00Z to 1970-01-01T01:00:00Z":                                 func(s *node.Shutdown) { s.Began = at(3601) },
		"began 1969-12-31T23:59:59Z is not from 1970-01-01T00:00:00Z to 1970-01-01T01:00:00Z":                                 func(s *node.Shutdown) { s.Began = at(-1) },
		"began 0001-01-01T00:00:00Z is not from 1970-01-01T00:00:00Z to 1970-01-01T01:00:00Z":                                 func(s *node.Shutdown) { s.Began = time.Time{} },
		"ended 1970-01-01T00:49:59Z is not from 1970-01-01T00:50:00Z to 1970-01-01T01:00:00Z":                                 func(s *node.Shutdown) { s.Ended = at(2999) },
		"ended 1970-01-01T01:00:01Z is not from 1970-01-01T00:50:00Z to 1970-01-01T01:00:00Z":                                 func(s *node.Shutdown) { s.Ended = at(3601) },
		"hostEnd 9000-01-01T00:00:00Z is not from 1970-01-01T00:00:00Z to 2554-07-21T23:34:33.709551614Z":                     func(s *node.Shutdown) { s.HostEnd = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"deadline of an announcement 1969-12-31T23:59:59Z is not from 1970-01-01T00:00:00Z to 2554-07-21T23:34:33.709551614Z": func(s *node.Shutdown) { s.Announced[0].Deadline = at(-1) },
		"at of an announcement 1970-01-01T01:00:01Z is not from 1970-01-01T00:00:00Z to 1970-01-01T01:00:00Z":                 func(s *node.Shutdown) { s.Announced[0].At = at(3601) },
		"cancelled is true, but it has not ended or is announced":                                                             func(s *node.Shutdown) { s.Cancelled = true },
		"it has a timetable, but is neither announced nor over":                                                               func(s *node.Shutdown) { s.Announced, s.Ended = nil, time.Time{} },
		"done is -1, with a timetable: true":                                                                                  func(s *node.Shutdown) { s.DoneBuckets = -1 },
		"done is 3 of 2 buckets":                                                                                              func(s *node.Shutdown) { s.DoneBuckets = 3 },
		"done is 1, with a timetable: false":                                                                                  func(s *node.Shutdown) { s.Timetable = nil },
		"received of the timetable 1969-12-31T23:59:59Z is not from 1970-01-01T00:00:00Z to 1970-01-01T01:00:00Z":             func(s *node.Shutdown) { s.Timetable.Received = at(-1) },
		"received of the timetable 1970-01-01T01:00:01Z is not from 1970-01-01T00:00:00Z to 1970-01-01T01:00:00Z":             func(s *node.Shutdown) { s.Timetable.Received = at(3601) },
		"budget.buckets must not be empty":                                                                                    func(s *node.Shutdown) { s.Timetable.Budget.Buckets = nil },
		"budget.waitEndNanoseconds 0 is before the last bucket's endNanoseconds 30000000000":                                  func(s *node.Shutdown) { s.Timetable.Budget.WaitEnd = 0 },
		"budget.waitEndNanoseconds 29900000000 must not be negative or more than budget.endNanoseconds 0":                     func(s *node.Shutdown) { s.Timetable.Budget.End = 0 },
	} {
		s, p := wholeShutdown(t), wholePod(t)
		damage(s)
		left := requireDamaged(t, s, p, "its shutdown is damaged: ", named)
		require.Nil(t, left.Shutdown)
		require.Len(t, left.Pods, 1)
	}
}

// A log has a shutdown, and a pod with a value that no agent writes. An error names the pod, which is left out, and the
// shutdown counts. The times are as in TestADamagedShutdownIsLeftOut.
func TestADamagedPodIsLeftOut(t *testing.T) {
	for named, damage := range map[string]func(p *node.Pod){
		`its pod text/ is damaged: its object is that of pod text/text with the key "text"`: func(p *node.Pod) { p.Name = "" },
		"it has no object": func(p *node.Pod) { p.Object = nil },
		`its object is that of pod text/text with the key "text"`:                                 func(p *node.Pod) { p.Key = "texu" },
		`its object is that of pod text/other with the key "text"`:                                func(p *node.Pod) { p.Object.Name = "other" },
		"grantedSeconds -9223372036854775808 must not be negative":                                func(p *node.Pod) { p.GrantedSeconds = math.MinInt64 },
		`policy "x" is not known`:                                                                 func(p *node.Pod) { p.Policy = "x" },
		"shutdown -1 is not from 0 to 2147483647":                                                 func(p *node.Pod) { p.SignalledBy = -1 },
		"joined 0 is not from 1 to 2147483647":                                                    func(p *node.Pod) { p.StillRanIn = []int{1, 0} },
		"signalled, deadline and policy must be all set or all unset":                             func(p *node.Pod) { p.Signalled = time.Time{} },
		"is damaged: signalled, deadline and policy must be all set or all unset":                 func(p *node.Pod) { p.Deadline = time.Time{} },
		`policy "" is not known`:                                                                  func(p *node.Pod) { p.Policy = "" },
		"deadline 1969-12-31T23:59:59Z is not from 1970-01-01T00:50:00Z to 1970-01-01T00:50:20Z":  func(p *node.Pod) { p.Ended, p.Deadline = time.Time{}, at(-1) },
		"ended 1970-01-01T01:00:01Z is not from":                                                  func(p *node.Pod) { p.Ended = at(3601) },
		"signalled 1969-12-31T23:59:59Z is not from 1970-01-01T00:00:00Z to 1970-01-01T01:00:00Z": func(p *node.Pod) { p.Ended, p.Signalled = time.Time{}, at(-1) },
		"signalled 1970-01-01T01:00:01Z is not from 1970-01-01T00:00:00Z to 1970-01-01T01:00:00Z": func(p *node.Pod) { p.Ended, p.Signalled = time.Time{}, at(3601) },
		"deadline 1970-01-01T00:49:59Z is not from 1970-01-01T00:50:00Z to 1970-01-01T00:50:20Z":  func(p *node.Pod) { p.Ended, p.Deadline = time.Time{}, at(2999) },
		"deadline 1970-01-01T00:50:21Z is not from 1970-01-01T00:50:00Z to 1970-01-01T00:50:20Z":  func(p *node.Pod) { p.Ended, p.Deadline = time.Time{}, at(3021) },
	} {
		s, p := wholeShutdown(t), wholePod(t)
		damage(p)
		left := requireDamaged(t, s, p, "its pod text/", named)
		require.NotNil(t, left.Shutdown)
		require.Empty(t, left.Pods)
	}
}

// ListPods may return a pod without a name, and a drain kills that pod too. The next agent reads it from the log, and knows it
// by its UID.
func TestAPodWithoutANameIsRead(t *testing.T) {
	p := wholePod(t)
	p.Name, p.Object.Name = "", ""
	found := parse(logOf(t, wholeShutdown(t), p), bootOfLog, now())
	require.Empty(t, found.Errs)
	require.Len(t, found.Entries.Pods, 1)
	require.Equal(t, p.Key, found.Entries.Pods[0].Key)
}

// requireDamaged writes a log with a shutdown and a pod, one of them damaged, and reads it. It requires one error, with
// the texts prefix and named, and returns the entries that are left.
func requireDamaged(t *testing.T, s *node.Shutdown, p *node.Pod, prefix, named string) (left node.Entries) {
	t.Helper()
	found := parse(logOf(t, s, p), bootOfLog, now())
	require.Len(t, found.Errs, 1, named)
	require.ErrorContains(t, found.Errs[0], prefix)
	require.ErrorContains(t, found.Errs[0], named)
	return found.Entries
}

// logOf returns a log with a shutdown and a pod.
func logOf(t *testing.T, s *node.Shutdown, p *node.Pod) []byte {
	t.Helper()
	var newest newestEntries
	_, err := newest.update(node.Entries{Shutdown: s, Pods: []*node.Pod{p}})
	require.NoError(t, err)
	text, err := newest.text(bootOfLog)
	require.NoError(t, err)
	return text
}

// A log with times up to 3020 s after its boot is read 1 s after a boot. If the log is of another boot, its entries are
// accepted. If it is of the same boot, their times are in the future, and they are refused.
func TestTimesOfAnotherBootMayBeLater(t *testing.T) {
	text := logOf(t, wholeShutdown(t), wholePod(t))
	found := parse(text, "two", at(1))
	require.Empty(t, found.Errs)
	require.NotNil(t, found.Entries.Shutdown)
	require.Len(t, found.Entries.Pods, 1)
	found = parse(text, bootOfLog, at(1))
	require.Len(t, found.Errs, 2, "the shutdown and the pod")
}

// The checks of a stored log accept every timetable that an agent may store: random ones, also after an earlier deadline
// has shortened them once or twice.
func TestEveryTimetableIsAccepted(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a seed
	upTo := func(longest time.Duration) time.Duration { return time.Duration(random.Int64N(int64(longest))) }
	flip := func() bool { return random.IntN(2) == 0 }
	for range 5000 {
		opts := plan.Options{
			Steps:       plan.Steps{Prepare: flip(), Hold: flip(), Publish: flip(), Readiness: flip(), Unmount: flip(), Statuses: flip()},
			HoldTimeout: upTo(20 * time.Second), PrepareTimeout: upTo(5 * time.Second), NoRollOver: flip(),
		}
		var schedule plan.Schedule
		for i := range random.IntN(5) + 1 {
			seconds := int64(random.IntN(60))
			if random.IntN(20) == 0 {
				seconds = math.MaxInt64 - int64(random.IntN(3))
			}
			schedule = append(schedule, plan.Bucket{Priority: int32(i), Seconds: seconds}) //nolint:gosec // it is small
		}
		r := timetable.Request{Schedule: schedule, Options: opts, Received: at(3000).Add(upTo(time.Second / 2))}
		if random.IntN(4) > 0 {
			r.HostEnd = r.Received.Add(upTo(2 * time.Minute))
		}
		s := wholeShutdown(t)
		table := timetable.New(r)
		for shortened := range 3 {
			s.Timetable, s.DoneBuckets = table, random.IntN(len(schedule)+1)
			require.NoError(t, checkShutdown(s, now()), "%+v, shortened %d times", r, shortened)
			r.Old, r.DoneBuckets, r.Received = table, s.DoneBuckets, r.Received.Add(upTo(time.Minute))
			r.HostEnd = r.Received.Add(upTo(time.Minute))
			table = timetable.New(r)
		}
	}
}
