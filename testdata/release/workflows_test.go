package main

import (
	"os"
	"path/filepath"
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
	if _, found, _ := strings.Cut(string(read(t, "../../.github", "CHANGELOG.md")), "\n## Unreleased\n"); found == "" {
		t.Error("CHANGELOG.md has no section for what is not released yet")
	}
}
