package validation_test

import (
	"fmt"
	"maps"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/validation"
)

// settings are valid shutdown settings, of which the cases override some.
type settings struct {
	Total      metav1.Duration `json:"shutdownGracePeriod"`
	Critical   metav1.Duration `json:"shutdownGracePeriodCriticalPods"`
	ByPriority [][2]int64      `json:"byPriority"`
	Gates      gateMap         `json:"gates"`
}

// vectors is the content of testdata/validation.yaml.
type vectors struct {
	ValidateSleepAction struct {
		Basis  string
		MsgOff string `json:"msg_off"`
		MsgOn  string `json:"msg_on"`
		Cases  []struct {
			Name, Want, Note string
			Seconds, Grace   int64
			ZeroEnabled      bool `json:"zero_enabled"`
		}
	} `json:"validate_sleep_action"`
	DropSleepAction struct {
		Basis, Note string
		Columns     []string
		Cases       [][4]any
	} `json:"drop_sleep_action"`
	KubeletConfigValidation struct {
		Basis, Match string
		Base         settings
		Cases        []struct {
			Name, Err  string
			Gates      gateMap
			Critical   *metav1.Duration
			TotalValue *metav1.Duration `json:"total_value"`
			ByPriority [][2]int64       `json:"byPriority"`
		}
	} `json:"kubelet_config_validation"`
}

// loadVectors reads the cases that were copied from the tests of Kubernetes. None of the groups may be empty.
func loadVectors(t *testing.T) (v vectors) {
	t.Helper()
	data, err := os.ReadFile("testdata/validation.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(data, &v))
	require.NotEmpty(t, v.ValidateSleepAction.Cases)
	require.NotEmpty(t, v.DropSleepAction.Cases)
	require.NotEmpty(t, v.KubeletConfigValidation.Cases)
	return v
}

// The cases of Kubernetes' TestValidateSleepAction: each sleep is valid ("ok"), or has one of two messages: msg_off if the
// feature gate of zero sleeps is off, msg_on if it is on.
func TestConformanceSleepAction(t *testing.T) {
	group := loadVectors(t).ValidateSleepAction
	for _, c := range group.Cases {
		t.Run(c.Name, func(t *testing.T) {
			opts := validation.Options{NoZeroSleep: !c.ZeroEnabled}
			errs := validation.ValidatePodTermination(spec(withGrace(c.Grace), withHook(sleep(c.Seconds))), opts, nil)
			message, isInvalid := map[string]string{"msg_off": group.MsgOff, "msg_on": group.MsgOn}[c.Want]
			if !isInvalid {
				require.Equal(t, "ok", c.Want)
				require.Nil(t, errs)
				return
			}
			require.Equal(t, field.ErrorList{field.Invalid(
				field.NewPath("containers").Index(0).Child("lifecycle", "preStop", "sleep"), c.Seconds, fmt.Sprintf(message, c.Grace),
			)}, errs)
		})
	}
}

// The cases of Kubernetes' TestDropPodLifecycleSleepAction. Each has whether the feature gate is on, the hook of the
// stored pod, the hook of the new pod, and what must be left of the new pod's hook.
func TestConformanceDropSleepAction(t *testing.T) {
	hooks := map[any]*v1.LifecycleHandler{
		"exec": exec("foo"), "httpGet": {HTTPGet: &v1.HTTPGetAction{Path: "/"}}, "sleep": sleep(1),
	}
	specWith := func(hook any) *v1.PodSpec {
		if hook == "nil" {
			return specWithEachKind(nil)
		}
		require.Contains(t, hooks, hook)
		return specWithEachKind(preStop(hooks[hook]))
	}
	for _, c := range loadVectors(t).DropSleepAction.Cases {
		isGateOn, stored, updated, want := c[0].(bool), specWith(c[1]), specWith(c[2]), specWith(c[3])
		validation.DropDisabledFields(updated, stored, validation.Options{NoSleepAction: !isGateOn})
		require.Equal(t, want, updated, c)
	}
}

// The shutdown cases of the kubelet's TestValidateKubeletConfiguration. Each case changes some fields of a valid
// configuration. ValidateNodeShutdown must return the error of the case, and may return more errors.
func TestConformanceKubeletConfig(t *testing.T) {
	group := loadVectors(t).KubeletConfigValidation
	require.NoError(t, validation.ValidateNodeShutdown(config(group.Base.Total, group.Base.Critical, group.Base.ByPriority), group.Base.Gates.options()))
	for _, c := range group.Cases {
		t.Run(c.Name, func(t *testing.T) {
			total, critical, gates := group.Base.Total, group.Base.Critical, gateMap{}
			maps.Copy(gates, group.Base.Gates)
			maps.Copy(gates, c.Gates)
			if c.TotalValue != nil {
				total = *c.TotalValue
			}
			if c.Critical != nil {
				critical = *c.Critical
			}
			cfg := config(total, critical, c.ByPriority)
			require.ErrorContains(t, validation.ValidateNodeShutdown(cfg, gates.options()), c.Err)
		})
	}
}

// config returns a configuration with both kinds of schedule, of which only one may be set. list has pairs of a
// priority and its seconds.
func config(total, critical metav1.Duration, list [][2]int64) plan.Config {
	var buckets []bucket
	for _, pair := range list {
		buckets = append(buckets, bucket{priority: int32(pair[0]), seconds: pair[1]})
	}
	cfg := byPriority(buckets...)
	cfg.ShutdownGracePeriod, cfg.ShutdownGracePeriodCriticalPods = total, critical
	return cfg
}
