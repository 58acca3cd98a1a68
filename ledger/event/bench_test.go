package event_test

import (
	"os"
	"strings"
	"testing"

	"jobledger/ledger/event"
)

// BenchmarkUnmarshal reads one event of each kind, as exports and archives have them.
func BenchmarkUnmarshal(b *testing.B) {
	text, err := os.ReadFile("../../testdata/events.golden.jsonl")
	if err != nil {
		b.Fatal(err)
	}
	var lines [][]byte
	for line := range strings.Lines(string(text)) {
		lines = append(lines, []byte(strings.TrimSuffix(line, "\n")))
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		for _, line := range lines {
			var e event.Event
			if err := e.UnmarshalJSON(line); err != nil {
				b.Fatal(err)
			}
		}
	}
}
