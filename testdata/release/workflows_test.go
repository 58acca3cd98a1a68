package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestWorkflows: the workflows of GitHub and GitLab run .ci/run, with two releases of Go and each PostgreSQL.
// What a workflow may have is checked by actionlint, in .ci/run.
func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob("../../.github/workflows/*.yml")
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		var workflow map[string]any
		if err := yaml.UnmarshalStrict(read(t, ".", file), &workflow); err != nil || workflow["jobs"] == nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	gitlab, err := os.ReadFile("../../.gitlab-ci.yml")
	if err != nil {
		t.Fatal(err)
	}
	var jobs map[string]any
	if err := yaml.UnmarshalStrict(gitlab, &jobs); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"ci.yml": string(read(t, "../../.github/workflows", "ci.yml")),
		".gitlab-ci.yml": string(gitlab)} {
		for _, part := range []string{".ci/run", "stable", "oldstable"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s has no %s", name, part)
			}
		}
		for _, version := range []string{"14", "15", "16", "17", "18"} {
			if !strings.Contains(text, version) {
				t.Errorf("%s has no PostgreSQL %s", name, version)
			}
		}
	}
	toolchain := regexp.MustCompile(`(?m)^toolchain go(.+)$`).FindSubmatch(read(t, "../..", "go.mod"))
	if toolchain == nil || !strings.Contains(string(gitlab), "golang:"+string(toolchain[1])+"-") {
		t.Errorf("go.mod has the toolchain %q, which the release of .gitlab-ci.yml does not use", toolchain)
	}
	if _, found, _ := strings.Cut(string(read(t, "../../.github", "CHANGELOG.md")), "\n## Unreleased\n"); found == "" {
		t.Error("CHANGELOG.md has no section for what is not released yet")
	}
}

// TestWorkflowsTrustLittle: each action is named by its commit, and the key of a release is only in a job that
// runs nothing of this repository, no action but the one that hands it SHA256SUMS, and may write nothing.
func TestWorkflowsTrustLittle(t *testing.T) {
	type step struct {
		Uses, Run string
		Env       map[string]string
	}
	type job struct {
		Needs       any
		Permissions map[string]string
		Steps       []step
		Env         map[string]string
	}
	pinned := regexp.MustCompile(`^actions/[a-z-]+@[0-9a-f]{40}$`)
	signers := 0
	for _, file := range []string{"ci.yml", "release.yml"} {
		var workflow struct{ Jobs map[string]job }
		text := read(t, "../../.github/workflows", file)
		if err := yaml.Unmarshal(text, &workflow); err != nil {
			t.Fatal(err)
		}
		for name, j := range workflow.Jobs {
			secret := false
			for _, s := range j.Steps {
				if s.Uses != "" && !pinned.MatchString(s.Uses) {
					t.Errorf("%s, %s: %q is not pinned by a commit", file, name, s.Uses)
				}
				secret = secret || strings.Contains(fmt.Sprint(s, j.Env), "secrets.")
			}
			if !secret {
				continue
			}
			signers++
			for _, s := range j.Steps {
				if strings.Contains(s.Uses, "checkout") || strings.Contains(s.Run, "go ") {
					t.Errorf("%s, %s: %q runs beside the key", file, name, s.Uses+s.Run)
				}
			}
			if len(j.Permissions) > 0 || j.Permissions == nil {
				t.Errorf("%s, %s: the job with the key may %v", file, name, j.Permissions)
			}
		}
	}
	if signers != 1 {
		t.Errorf("%d jobs have the key, want 1", signers)
	}
}
