package cli

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"github.com/rivo/uniseg"
)

// TestTableDropsColumns: no line is wider than the terminal, and the remaining columns are complete.
func TestTableDropsColumns(t *testing.T) {
	for width, want := range map[int]string{
		0:   "JOB STATE KEY WORKER PROCESS",
		200: "JOB STATE KEY WORKER PROCESS",
		100: "JOB STATE KEY WORKER",
		80:  "JOB STATE KEY",
		60:  "JOB STATE KEY",
		40:  "JOB STATE",
	} {
		table := &Table{Columns: []Column{{Title: "JOB"}, {Title: "STATE"}, {Title: "KEY", Drop: 1},
			{Title: "WORKER", Drop: 2}, {Title: "PROCESS", Drop: 3}}}
		table.Add(strings.Repeat("J", 26), "queued", strings.Repeat("k", 20), strings.Repeat("w", 30),
			strings.Repeat("p", 30))
		var out bytes.Buffer
		p := &Program{Stdout: bufio.NewWriter(&out), StdoutTerminal: width > 0, Width: width}
		if err := p.PrintTable(table); err != nil {
			t.Fatal(err)
		}
		p.Stdout.Flush()
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if got := strings.Join(strings.Fields(lines[0]), " "); got != want {
			t.Errorf("width %d: columns %q, want %q", width, got, want)
		}
		for _, line := range lines {
			if width > 0 && uniseg.StringWidth(line) > width || strings.Contains(line, "…") {
				t.Errorf("width %d: line %q does not fit or is cut", width, line)
			}
		}
	}
}
