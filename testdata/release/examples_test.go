package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// killAfter is that of a worker, by default.
const killAfter = 10 * time.Second

// TestExampleOfCompose loads the example as Compose does, which checks its schema, and compares how long a
// worker may take to stop with how long it is given.
func TestExampleOfCompose(t *testing.T) {
	text := read(t, "examples", "compose.yaml")
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{WorkingDir: t.TempDir(),
		ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: text}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range project.Services {
		stop := 10 * time.Second
		if s.StopGracePeriod != nil {
			stop = time.Duration(*s.StopGracePeriod)
		}
		checkFlags(t, s.Command)
		checkStops(t, s.Name, s.Command, stop)
		if !s.ReadOnly || s.Privileged || !slices.Contains(s.CapDrop, "ALL") {
			t.Errorf("%s is not locked down", s.Name)
		}
	}
	if len(project.Services) != 2 {
		t.Errorf("the services are %v", project.ServiceNames())
	}
	bad := bytes.Replace(text, []byte("stop_grace_period"), []byte("stop_grace_time"), 1)
	if _, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{WorkingDir: t.TempDir(),
		ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: bad}}}); err == nil {
		t.Error("a field that Compose does not know is accepted")
	}
}

// checkStops compares the time that a worker takes to stop with the time after which it is killed.
func checkStops(t *testing.T, name string, args []string, given time.Duration) {
	t.Helper()
	if i := slices.Index(args, "--grace-period"); args[0] == "work" {
		takes, err := time.ParseDuration(args[i+1])
		if i < 0 || err != nil || takes+killAfter >= given {
			t.Errorf("%s stops within %s and %s, and is killed after %s", name, takes, killAfter, given)
		}
	}
}

// checkFlags asks the program whether it knows the flags of a command.
func checkFlags(t *testing.T, args []string) {
	t.Helper()
	verb := exec.Command("go", "run", "./cmd/jobledger", args[0], "--help")
	verb.Dir = "../.."
	help, err := verb.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, help)
	}
	for _, a := range args[1:] {
		if a == "--" {
			break
		}
		if strings.HasPrefix(a, "-") && !strings.Contains(string(help), a+" ") {
			t.Errorf("%s has no flag %s", args[0], a)
		}
	}
}

// TestExamplesOfKubernetes decodes each object strictly, as its own type, and looks at what matters for a
// worker.
func TestExamplesOfKubernetes(t *testing.T) {
	files, err := filepath.Glob("examples/kubernetes-*.yaml")
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range strings.Split(string(text), "\n---\n") {
			var head struct{ APIVersion, Kind string }
			if err := yaml.Unmarshal([]byte(document), &head); err != nil {
				t.Fatal(file, err)
			}
			var into any
			var pod *corev1.PodSpec
			switch head.APIVersion + " " + head.Kind {
			case "v1 PersistentVolumeClaim":
				into = &corev1.PersistentVolumeClaim{}
			case "v1 Service":
				into = &corev1.Service{}
			case "policy/v1 PodDisruptionBudget":
				into = &policyv1.PodDisruptionBudget{}
			case "apps/v1 Deployment":
				d := &appsv1.Deployment{}
				into, pod = d, &d.Spec.Template.Spec
			case "batch/v1 Job":
				j := &batchv1.Job{}
				into, pod = j, &j.Spec.Template.Spec
			default:
				t.Errorf("%s: %+v", file, head)
				continue
			}
			if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
				t.Errorf("%s, %s: %v", file, head.Kind, err)
				continue
			}
			if pod != nil {
				checkPod(t, file+" "+head.Kind, pod)
			}
			if d, ok := into.(*appsv1.Deployment); ok && strings.Contains(document, "persistentVolumeClaim") &&
				(*d.Spec.Replicas != 1 || d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType) {
				t.Errorf("%s: several pods may have one file", file)
			}
		}
	}
	if err := yaml.UnmarshalStrict([]byte("spec: {replica: 1}"), &appsv1.Deployment{}); err == nil {
		t.Error("a field that Kubernetes does not know is accepted")
	}
}

func checkPod(t *testing.T, name string, pod *corev1.PodSpec) {
	t.Helper()
	given := 30 * time.Second
	if s := pod.TerminationGracePeriodSeconds; s != nil {
		given = time.Duration(*s) * time.Second
	}
	volumes := make(map[string]bool)
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
	}
	if s := pod.SecurityContext; s == nil || *s.RunAsUser != imageUser || !*s.RunAsNonRoot {
		t.Errorf("%s runs as another user than that of the image", name)
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		checkFlags(t, c.Args)
		checkStops(t, name+" "+c.Name, c.Args, given)
		if s := c.SecurityContext; s == nil || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation {
			t.Errorf("%s %s is not locked down", name, c.Name)
		}
		if verb := c.Args[0]; (verb == "work" || verb == "serve") && c.LivenessProbe == nil ||
			verb == "serve" && c.ReadinessProbe == nil {
			t.Errorf("%s %s has no probe", name, c.Name)
		}
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] {
				t.Errorf("%s %s mounts %s, which the pod does not have", name, c.Name, m.Name)
			}
		}
	}
}
