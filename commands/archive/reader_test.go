package archive_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/projection/audit"
)

// kept is a ledger of which a part has left, with its reader.
type kept struct {
	*testing.T
	*commands.Service
	archive.Reader
	added int64 // events, by the last open
}

func newKept(t *testing.T) *kept {
	s, dir := ofNight(t, 2000), filepath.Join(t.TempDir(), "archive")
	closeAll(t, s, dir, func() int64 { return 512 })
	m := archive.Removal{Service: s, Dir: dir, Actor: actor, OlderThan: time.Hour}
	if gone, err := m.All(t.Context(), nil); err != nil || gone.Jobs == 0 {
		t.Fatal(gone, err)
	}
	k := &kept{T: t, Service: s}
	k.Reader = archive.Reader{Store: s.Store, Dir: dir, Cache: filepath.Join(t.TempDir(), "cache"),
		Begin: func(events int64, _ string) { k.added = events }}
	return k
}

func (k *kept) enqueue() {
	k.Helper()
	if _, err := k.Enqueue(k.Context(), actor, commands.Enqueue{Queue: "mail"}); err != nil {
		k.Fatal(err)
	}
}

func (k *kept) tail() (tail int64) {
	k.Helper()
	err := k.Service.Store.Read(k.Context(), func(tx *ledger.Tx) (err error) {
		tail, err = tx.Tail(k.Context())
		return err
	})
	if err != nil {
		k.Fatal(err)
	}
	return tail
}

// right opens the copy, which is that of the ledger as if nothing had left, and returns how many events were
// added for that.
func (k *kept) right(what string) int64 {
	k.Helper()
	k.added = 0
	got, err := k.Open(k.Context())
	if err != nil {
		k.Fatalf("%s: %v", what, err)
	}
	defer got.Close()
	if rootOf(k.T, got, k.tail()) != rootOf(k.T, k.Service.Store, k.tail()) {
		k.Errorf("%s: the copy has other events", what)
	}
	findings, missing, _, err := audit.CheckLoaded(k.Context(), got)
	if err != nil || len(findings) > 0 || missing > 0 {
		k.Errorf("%s: the rows are not those that the events make: %v, %d bodies, %v", what, findings, missing, err)
	}
	return k.added
}

// file is that of the copy.
func (k *kept) file() string {
	k.Helper()
	found, err := filepath.Glob(filepath.Join(k.Cache, "*", "reader.db"))
	if err != nil || len(found) != 1 {
		k.Fatal(found, err)
	}
	return found[0]
}

// The copy that is kept is read once, and then only what happened since is added. If it does not fit the
// ledger, or was changed, it is made again.
func TestReaderIsMovedForward(t *testing.T) {
	k := newKept(t)
	if added := k.right("made"); added != k.tail() {
		t.Errorf("%d events were read, and there are %d", added, k.tail())
	}
	if added := k.right("asked again"); added != 0 {
		t.Errorf("%d events were read again", added)
	}
	k.enqueue()
	if added := k.right("moved forward"); added != 1 {
		t.Errorf("%d events were read for one", added)
	}
	info, err := os.Stat(k.file())
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the copy may be read by others: %v, %v", info, err)
	}
	text, err := os.ReadFile(k.file())
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(path string) error{
		"a changed byte": func(path string) error {
			changed := append([]byte(nil), text...)
			changed[len(changed)/2] ^= 1
			return os.WriteFile(path, changed, 0o600)
		},
		"something else": func(path string) error { return os.WriteFile(path, text[100:], 0o600) },
		"an empty file":  func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"none":           os.Remove,
	} {
		if err := change(k.file()); err != nil {
			t.Fatal(err)
		}
		if added := k.right(what); added != k.tail() {
			t.Errorf("%s: %d events were read, and there are %d", what, added, k.tail())
		}
	}

	// A ledger that was put back to an earlier state has other events since.
	other := newKept(t)
	other.enqueue()
	other.Cache = k.Cache
	if added := other.right("another history"); added != other.tail() {
		t.Errorf("%d events were read of another history, and there are %d", added, other.tail())
	}

	// What was not asked for long is removed by a question about another ledger.
	folder, long := filepath.Dir(k.file()), time.Now().Add(-15*24*time.Hour)
	if err := os.Rename(folder, folder+"0"); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(folder+"0", long, long); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(k.Cache, "mine"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(k.Cache, "mine"), long, long); err != nil {
		t.Fatal(err)
	}
	other.right("asked again")
	if left, err := os.ReadDir(k.Cache); err != nil || len(left) != 2 {
		t.Errorf("in the folder of copies are %v, %v", left, err)
	}
}

// Whatever stops it, the next question goes on from there; those who ask at the same time get the same.
func TestReaderGoesOnWhereItStopped(t *testing.T) {
	archive.ReadAtOnce(t, 150)
	k := newKept(t)
	random := rand.New(rand.NewPCG(3, 7))
	cut, went, made := 0, int64(0), false // went is how many events those had who went on, before one was made
	within := time.Second                 // of which a part is waited for: as much as it takes
	for cut < 20 || went == 0 && cut < 200 {
		ctx, cancel := context.WithCancel(t.Context())
		k.Begin = func(events int64, _ string) {
			if !made {
				went = max(went, k.tail()-events)
			}
			if events > 0 {
				time.AfterFunc(time.Duration(random.Int64N(int64(within))), cancel)
			}
		}
		store, err := k.Open(ctx)
		cancel()
		switch {
		case err == nil:
			within = max(within/2, time.Millisecond)
			check := store.Close()
			if k.enqueue(); check != nil {
				t.Error(check)
			}
			if made = cut >= 15 && went > 0; !made {
				if err := os.RemoveAll(k.Cache); err != nil {
					t.Fatal(err)
				}
			}
		case errors.Is(err, context.Canceled):
			within += within / 4
		default:
			t.Errorf("cut off: %v", err)
		}
		cut++
	}
	if went == 0 {
		t.Error("none went on from where another had stopped")
	}
	k.Begin = nil
	k.right("after all that")

	if err := os.RemoveAll(k.Cache); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			store, err := k.Open(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			if rootOf(t, store, k.tail()) != rootOf(t, k.Service.Store, k.tail()) {
				t.Error("the copy has other events")
			}
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	k.right("after several at once")
}
