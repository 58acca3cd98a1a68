package attemptlog

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	_ "jobledger/ledger/ledgertest" // its flags
)

// wantKept returns what a file with that limit keeps of data.
func wantKept(data []byte, limit int64) []byte {
	if int64(len(data)) <= limit+cutMarkLen {
		return data
	}
	head, tail := limit/2, limit-limit/2
	cut := int64(len(data)) - head - tail
	return fmt.Appendf(nil, "%s"+cutMark+"%s", data[:head], cut, data[int64(len(data))-tail:])
}

// newFile returns a logFile at path, apart from any folder of logs.
func newFile(path string, limit int64) *logFile {
	return &logFile{limit: limit, create: func() (*os.File, error) {
		return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	}}
}

func TestLogFileKeepsHeadAndTail(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	for i := range 300 {
		limit := 200 + random.Int64N(300)
		data := make([]byte, random.Int64N(12*limit))
		if i < 8 { // around the lengths at which cutting begins
			short, long := limit+cutMarkLen, limit+limit/2+cutMarkLen
			data = make([]byte, []int64{0, 1, limit, short - 1, short, short + 1, long, long + 1}[i])
		}
		for j := range data {
			data[j] = byte(random.Uint32())
		}
		path := filepath.Join(dir, fmt.Sprint(i))
		l := newFile(path, limit)
		for left := data; len(left) > 0; {
			n := min(len(left), 1+random.IntN(int(limit)))
			l.write(left[:n])
			left = left[n:]
			if l.size > limit+limit/2+cutMarkLen {
				t.Fatalf("limit %d: the file has grown to %d bytes", limit, l.size)
			}
		}
		if _, err := l.close(nil); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if len(data) == 0 {
			if err == nil {
				t.Error("there is a file although nothing was written")
			}
			continue
		}
		if want := wantKept(data, limit); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("limit %d, %d bytes: got %q, %v\nwant %q", limit, len(data), got, err, want)
		}
	}
}

func TestCapturedReportsFileErrorOnClose(t *testing.T) {
	occupied := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(occupied, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := Capture{hash: sha256.New(), file: newFile(filepath.Join(occupied, "1.out"), 100)}
	for range 3 {
		if n, err := c.Write([]byte("abc")); n != 3 || err != nil {
			t.Errorf("write: %d, %v", n, err)
		}
	}
	logged, err := c.Close()
	digest, size := logged.SHA256, logged.Bytes
	if want := fmt.Sprintf("%x", sha256.Sum256([]byte("abcabcabc"))); digest != want || size != 9 || err == nil {
		t.Errorf("got %s, %d, %v", digest, size, err)
	}
}
