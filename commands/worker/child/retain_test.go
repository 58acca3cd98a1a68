package child

import (
	"strings"
	"testing"
)

func TestTailKeepsTheLastBytes(t *testing.T) {
	all := strings.Repeat("0123456789", 20)
	for _, piece := range []int{1, 3, 7, 16, 17, 200} {
		last := &tail{limit: 16}
		for rest := all; rest != ""; {
			n := min(piece, len(rest))
			last.Write([]byte(rest[:n]))
			rest = rest[n:]
			if len(last.kept) > 32 {
				t.Fatalf("holds %d bytes", len(last.kept))
			}
		}
		if got, want := string(last.last()), all[len(all)-16:]; got != want {
			t.Errorf("in pieces of %d: got %q, want %q", piece, got, want)
		}
	}
}
