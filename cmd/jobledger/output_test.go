package main

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
)

// closedPipe is a stdout whose reader has ended.
type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestOutputReaderGoneIsNoError(t *testing.T) {
	var stderr strings.Builder
	p := &program{&cli.Program{Stdout: bufio.NewWriter(closedPipe{}), Stderr: &stderr, Now: noon}}
	if code := p.run(t.Context(), []string{"version"}); code != cli.ExitOK || stderr.String() != "" {
		t.Errorf("got exit %d, %q", code, stderr.String())
	}
}

// fullDisk is a stdout that cannot store the output.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestOutputLostIsError(t *testing.T) {
	var stderr strings.Builder
	p := &program{&cli.Program{Stdout: bufio.NewWriter(fullDisk{}), Stderr: &stderr, Now: noon}}
	if code := p.run(t.Context(), []string{"version"}); code == cli.ExitOK ||
		!strings.HasPrefix(stderr.String(), "jobledger: ") {
		t.Errorf("got exit %d, %q", code, stderr.String())
	}
}

// printing returns a program whose stdout is a terminal of this width, or a pipe if it is 0.
func printing(width int, color bool) (*program, *bytes.Buffer) {
	var out bytes.Buffer
	return &program{&cli.Program{
		Stdout: bufio.NewWriter(&out), Stderr: io.Discard, Now: noon,
		StdoutTerminal: width > 0, Width: width, Color: color,
	}}, &out
}

// noon is a Monday in a zone whose offset is never a whole number of hours.
func noon() time.Time {
	return time.Date(2026, 5, 4, 12, 0, 0, 0, time.FixedZone("", 5*3600+45*60))
}
