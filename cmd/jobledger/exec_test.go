package main

import (
	"os"
	"strings"
	"testing"
)

// What people copy from the README is what the script runs.
func TestTheLoopOfTheReadmeIsTested(t *testing.T) {
	script, err := os.ReadFile("../../testdata/script/loop.txtar")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, loop, _ := strings.Cut(string(script), "-- loop.sh --\n")
	loop, _, _ = strings.Cut(loop, "\n-- ")
	if !strings.HasSuffix(loop, "\ndone") || !strings.Contains(string(readme), "```sh\n"+loop+"\n```\n") {
		t.Errorf("the README does not have\n%s", loop)
	}
}
