package logs

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobledger/commands/worker/attemptlog"
	"jobledger/ledger/event"
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
		if err := tail.open(func() (*os.File, error) { return os.Open(path) }); err != nil {
			t.Fatal(err)
		}
		text, skipped, _, err := tail.next()
		if err != nil {
			t.Fatal(err)
		}
		if got += string(text) + "|"; skipped != 0 {
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

// TestTailOverCuts follows a file that is kept as a worker keeps it, in looks of random distance. What is
// shown is the stream without the bytes that it says it left out.
func TestTailOverCuts(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 7))
	for run := range 60 {
		folder := filepath.Join(t.TempDir(), "jobs.db.logs")
		const job event.JobID = "01KDY9FY8800000000000000AA"
		out := attemptlog.New(nil, folder, job, 1, false, 300+random.Int64N(300))
		var tail tail
		var stream, got []byte
		look := func() {
			open := func() (*os.File, error) { return attemptlog.Open(folder, job, 1, false) }
			if err := tail.open(open); err != nil {
				t.Fatal(err)
			}
			for more := true; more; {
				var text []byte
				var skipped int64
				var err error
				if text, skipped, more, err = tail.next(); err != nil {
					t.Fatal(err)
				}
				if skipped > 0 { // put in their place what is known to be there
					got = append(got, stream[int64(len(got)):int64(len(got))+skipped]...)
				} else if skipped < 0 {
					t.Fatalf("run %d: something unknown was left out", run)
				}
				got = append(got, text...)
			}
		}
		for i := range 40 {
			line := fmt.Appendf(nil, "line %03d of run %d %s\n", i, run, strings.Repeat("x", random.IntN(60)))
			stream = append(stream, line...)
			if _, err := out.Write(line); err != nil {
				t.Fatal(err)
			}
			if random.IntN(4) == 0 {
				look()
			}
		}
		if _, err := out.Close(); err != nil {
			t.Fatal(err)
		}
		look()
		tail.close()
		if !bytes.Equal(got, stream) {
			t.Fatalf("run %d: got %q, want %q", run, got, stream)
		}
	}
}
