package cli

import (
	"bufio"
	"bytes"
	"io"
	"time"

	_ "jobledger/ledger/ledgertest" // for -soak, which every package's tests must know
)

// printing returns a program whose standard output is a buffer.
func printing(width int, color bool) (*Program, *bytes.Buffer) {
	var out bytes.Buffer
	return &Program{
		Stdout: bufio.NewWriter(&out), Stderr: io.Discard, Now: noon,
		StdoutTerminal: width > 0, Width: width, Color: color,
	}, &out
}

// noon is a Monday in a zone whose offset is never a whole number of hours.
func noon() time.Time {
	return time.Date(2026, 5, 4, 12, 0, 0, 0, time.FixedZone("", 5*3600+45*60))
}
