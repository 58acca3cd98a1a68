package attemptlog

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"jobledger/ledger"
)

// TestLogCheckFindsEveryChange writes logs of random lengths and flips a byte, cuts off a part, or appends
// one.
func TestLogCheckFindsEveryChange(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 9))
	salt := []byte("0123456789abcdef")
	states := make(map[State]int)
	for i := range 200 {
		limit := 200 + random.Int64N(300)
		data := make([]byte, 1+random.Int64N(4*limit))
		for j := range data {
			data[j] = byte(random.Uint32())
		}
		path := filepath.Join(t.TempDir(), "1.out")
		l := newFile(path, limit)
		c := Capture{salt: salt, hash: saltedHash(salt), file: l}
		if _, err := c.Write(data); err != nil {
			t.Fatal(err)
		}
		logged, err := c.Close()
		if err != nil {
			t.Fatal(err)
		}
		if want := ledger.Digest(salt, data); logged.SHA256 != want || logged.Bytes != int64(len(data)) {
			t.Fatalf("got %+v, want %s of %d bytes", logged, want, len(data))
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		check := func(s Stream, text, salt []byte) State {
			state, err := s.Check(bytes.NewReader(text), int64(len(text)), salt)
			if err != nil {
				t.Fatal(err)
			}
			return state
		}
		want := Whole
		if len(data) > int(limit+cutMarkLen) {
			want = Cut
		}
		if got := check(logged, text, salt); got != want {
			t.Fatalf("run %d: %d bytes of limit %d: got %s, want %s", i, len(data), limit, got, want)
		}
		states[want]++
		older := logged
		if older.KeptSHA256 = ""; want == Cut {
			if got := check(older, text, salt); got != SizeOnly {
				t.Errorf("run %d: a cut file without a digest: got %s", i, got)
			}
		}
		flipped := bytes.Clone(text)
		flipped[random.IntN(len(text))] ^= 1 << random.IntN(8)
		for name, changed := range map[string][]byte{"a flipped byte": flipped,
			"cut off": text[:random.IntN(len(text))], "longer": append(bytes.Clone(text), 'x'),
			"much longer": bytes.Repeat(text, 20)} {
			if got := check(logged, changed, salt); got != Differs {
				t.Errorf("run %d: %s: got %s, want %s", i, name, got, Differs)
			}
			if got := check(older, changed, salt); got != Differs && !(want == Cut && name == "a flipped byte") {
				t.Errorf("run %d: %s, without the digest of the part: got %s, want %s", i, name, got, Differs)
			}
		}
		if got := check(logged, flipped, nil); got != Unchecked {
			t.Errorf("of an erased job: got %s", got)
		}
		if got := check(Stream{Bytes: logged.Bytes}, flipped, salt); got != Unchecked {
			t.Errorf("without a digest: got %s", got)
		}
	}
	if states[Whole] < 20 || states[Cut] < 20 {
		t.Errorf("the files were %v", fmt.Sprint(states))
	}
}

func TestLogDigestOfWhatAnErrorLeft(t *testing.T) {
	l := newFile(filepath.Join(t.TempDir(), "1.out"), 100)
	c := Capture{hash: saltedHash(nil), file: l}
	for _, part := range []string{"first ", "second"} {
		if _, err := c.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
		l.err = os.ErrDeadlineExceeded // as on a full disk
	}
	logged, err := c.Close()
	if err == nil || logged.Bytes != 12 || logged.KeptSHA256 != ledger.Digest(nil, []byte("first ")) {
		t.Errorf("got %+v, %v", logged, err)
	}
}
