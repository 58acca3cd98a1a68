package child

import (
	"bytes"
	"strings"
	"testing"
)

func TestPrefixWriterWritesWholeLines(t *testing.T) {
	var out bytes.Buffer
	w := NewPrefixWriter(&out, "> ")
	for _, piece := range []string{"a", "b\nc\n", "", "\n", "last"} {
		if n, err := w.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Errorf("Write(%q) = %d, %v", piece, n, err)
		}
	}
	if got, want := out.String(), "> ab\n> c\n> \n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	w.Flush()
	w.Flush()
	if got, want := out.String(), "> ab\n> c\n> \n> last\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPrefixWriterBreaksLinesWithoutEnd(t *testing.T) {
	var out bytes.Buffer
	w := NewPrefixWriter(&out, "> ")
	for range 5 {
		w.Write(bytes.Repeat([]byte("x"), maxLine/2+1))
	}
	if len(w.line) >= maxLine || strings.Count(out.String(), "\n") != 2 {
		t.Errorf("holds %d bytes, wrote %d lines", len(w.line), strings.Count(out.String(), "\n"))
	}
	w.Flush()
	if got := strings.Count(out.String(), "x"); got != 5*(maxLine/2+1) {
		t.Errorf("%d bytes came through", got)
	}
}

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
