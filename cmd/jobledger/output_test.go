package main

import (
	"bufio"
	"strings"
	"syscall"
	"testing"
)

// closedPipe is a stdout whose reader has gone.
type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestAReaderThatLeavesIsNoError(t *testing.T) {
	var stderr strings.Builder
	p := &program{stdout: bufio.NewWriter(closedPipe{}), stderr: &stderr, now: noon}
	if code := p.run(t.Context(), []string{"version"}); code != exitOK || stderr.String() != "" {
		t.Errorf("got exit %d, %q", code, stderr.String())
	}
}

// fullDisk is a stdout that cannot take what was printed.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestLostOutputIsAnError(t *testing.T) {
	var stderr strings.Builder
	p := &program{stdout: bufio.NewWriter(fullDisk{}), stderr: &stderr, now: noon}
	if code := p.run(t.Context(), []string{"version"}); code == exitOK || !strings.HasPrefix(stderr.String(), "jobledger: ") {
		t.Errorf("got exit %d, %q", code, stderr.String())
	}
}
