package web

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/remote"
	"jobledger/commands/remote/wire"
	"jobledger/ledger/ledgertest"
)

// Calls of many goroutines share requests, and each has an outcome of its own, even if the request that
// they share is refused because of one of them.
func TestCallsThatShareRequestsHaveTheirOwnOutcomes(t *testing.T) {
	t.Parallel()
	s := serve(t, "127.0.0.1:0")
	token := strings.TrimPrefix(s.create("p", []string{"q"}, access.Enqueue), "Bearer ")
	client, err := remote.New(remote.Config{URL: s.base, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	calls := ledgertest.Size(60, 120, 400)
	var mu sync.Mutex
	same := 0 // calls that got the key
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			e := commands.Enqueue{Queue: "q", Payload: fmt.Append(nil, "payload ", i)}
			switch i % 20 {
			case 3:
				e.Key = "same"
			case 7:
				e.Queue = "other"
			}
			got, err := client.Enqueue(t.Context(), "", e, commands.Enqueue{Queue: "q", Key: fmt.Sprint("second ", i)})
			p, refused := errors.AsType[*wire.Problem](err)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case i%20 == 7:
				if !refused || p.Code != "forbidden" {
					t.Errorf("another queue: %v", err)
				}
			case i%20 == 3 && errors.Is(err, commands.ErrConflict):
			case err != nil || len(got) != 2 || got[1].Key != fmt.Sprint("second ", i):
				t.Errorf("call %d: %v, %v", i, got, err)
			default:
				if i%20 == 3 {
					same++
				}
				j, err := s.service().Get(t.Context(), got[0].ID)
				if err != nil || string(j.Payload) != string(e.Payload) {
					t.Errorf("call %d: %q, %v", i, j.Payload, err)
				}
			}
		})
	}
	all.Wait()
	if same != 1 {
		t.Errorf("%d calls got the same key", same)
	}
	commandstest.Verify(t, s.Store)
}
