package main

import (
	"os"
	"strings"
	"testing"
)

// TestDocsShowTestedShellLoop: the shell loop of docs/contract.md is the one that the script runs.
func TestDocsShowTestedShellLoop(t *testing.T) {
	script, err := os.ReadFile("../../testdata/script/loop.txtar")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("docs/contract.md")
	if err != nil {
		t.Fatal(err)
	}
	_, loop, _ := strings.Cut(string(script), "-- loop.sh --\n")
	loop, _, _ = strings.Cut(loop, "\n-- ")
	if !strings.HasSuffix(loop, "\ndone") || !strings.Contains(string(page), "```sh\n"+loop+"\n```\n") {
		t.Errorf("docs/contract.md does not have\n%s", loop)
	}
}
