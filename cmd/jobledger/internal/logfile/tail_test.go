package logfile

import (
	"os"
	"path/filepath"
	"testing"

	_ "jobledger/ledger/ledgertest" // for -soak, which every package's tests must know
)

// TestTailJoinsPieces: a character that comes in two pieces is read as one; a file whose middle is cut out
// meanwhile goes on at its end.
func TestTailJoinsPieces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "1.out")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var tail tail
	defer tail.close()
	got, cuts := "", 0
	read := func() {
		t.Helper()
		if err := tail.open(path); err != nil {
			t.Fatal(err)
		}
		text, skipped, err := tail.next()
		if err != nil {
			t.Fatal(err)
		}
		if got += string(text) + "|"; skipped {
			cuts++
		}
	}
	for _, piece := range []string{"a\xe2", "\x82", "\xacb", "\x1b", "\xff", "c"} {
		if _, err := file.WriteString(piece); err != nil {
			t.Fatal(err)
		}
		read()
	}
	if err := file.Truncate(3); err != nil {
		t.Fatal(err)
	}
	if read(); tail.read != 3 || cuts != 1 {
		t.Errorf("after a cut: at %d, %d cuts", tail.read, cuts)
	}
	if _, err := file.WriteAt([]byte("end"), 3); err != nil {
		t.Fatal(err)
	}
	read()
	if want := "a||€b|\x1b|\xff|c||end|"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
