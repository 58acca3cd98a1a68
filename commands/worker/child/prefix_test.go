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

func TestPrefixWriterSplitsLongLines(t *testing.T) {
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
