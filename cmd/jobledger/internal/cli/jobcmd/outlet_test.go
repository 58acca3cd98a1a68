package jobcmd

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	_ "jobledger/ledger/ledgertest" // for -soak, which every package's tests must know
)

func TestOutletWithoutReaderWaitsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		o := newOutlet(w, "program")
		begin := time.Now()
		for i := range 1000 {
			line := fmt.Sprintf("%04d %s\n", i, strings.Repeat("x", 1018))
			if n, err := io.WriteString(o, line); n != len(line) || err != nil {
				t.Fatal(n, err)
			}
			if i%10 == 0 {
				_, _ = io.WriteString(o.Messages(), "message\n")
			}
		}
		if took := time.Since(begin); took != maxWait {
			t.Errorf("a thousand writes without a reader took %s, want %s once", took, maxWait)
		}
		if o.Finish(time.Second) {
			t.Error("it says that all was read")
		}
		var got bytes.Buffer
		read := make(chan struct{})
		go func() {
			defer close(read)
			_, _ = io.Copy(&got, r)
		}()
		if !o.Finish(time.Second) {
			t.Error("not all was passed on when a reader came")
		}
		_, _ = io.WriteString(o, "read again\n")
		if !o.Finish(time.Second) || time.Since(begin) != maxWait+time.Second {
			t.Errorf("a reader that is back is waited for: %s", time.Since(begin))
		}
		_ = w.Close()
		<-read
		text := got.String()
		if !strings.HasPrefix(text, "0000 x") ||
			!strings.Contains(text, " bytes were left out here, because there was no reader\n") ||
			!strings.HasSuffix(text, "\nread again\n") {
			t.Errorf("got %.80q … %q", text, text[max(0, len(text)-200):])
		}
		if len(text) > room+pieceSize+200 {
			t.Errorf("%d bytes were kept", len(text))
		}
	})
}

// slowReader takes a second for each piece. The outlet waits for it, however long that takes.
type slowReader struct{ got bytes.Buffer }

func (s *slowReader) Write(b []byte) (int, error) {
	time.Sleep(time.Second) // of the simulated clock
	return s.got.Write(b)
}

func TestOutletSlowReaderGetsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := new(slowReader)
		o := newOutlet(slow, "program")
		want := strings.Repeat("0123456789abcdef", 64<<10)
		for i := 0; i < len(want); i += 32 << 10 {
			if _, err := io.WriteString(o, want[i:i+32<<10]); err != nil {
				t.Fatal(err)
			}
		}
		if got := slow.got.String(); got != want {
			t.Errorf("%d bytes of %d", len(got), len(want))
		}
	})
}

func TestOutletReportsABrokenPipe(t *testing.T) {
	r, w := io.Pipe()
	_ = r.Close()
	o := newOutlet(w, "program")
	_, _ = io.WriteString(o, "a")
	if _, err := io.WriteString(o, "b"); err == nil {
		t.Error("no error")
	}
	if !o.Finish(time.Minute) {
		t.Error("it waits for a reader that is gone")
	}
}
