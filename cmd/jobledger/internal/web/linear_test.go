package web

import (
	"context"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/commands"
	"jobledger/commands/commandstest/lineartest"
	"jobledger/commands/remote"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// Clients whose connections are cut at random points see one order with each other and with clients of the
// ledger itself, and none of their claims is lost.
func TestHistoriesOverHTTPAreLinearizable(t *testing.T) {
	t.Parallel()
	counts := make(map[string]int)
	cuts := int32(0)
	missing := func() (names []string) {
		for _, answer := range []string{"enqueue", "claim", "claim none", "heartbeat", "succeed", "fail",
			"release"} {
			if counts[answer] == 0 {
				names = append(names, answer)
			}
		}
		return names
	}
	// Which answers a history has depends on how fast the server is: another one has those that are missing.
	for n := 0; n < ledgertest.Size(1, 1, 20) || n < 8 && len(missing()) > 0; n++ {
		var cutters []*cutter
		var s *served
		history := lineartest.Outside{Clients: 3, Calls: 120, Lease: time.Minute}
		history.Begin = func(store *ledger.Store) (func(string) lineartest.Calls, func()) {
			s = serveWith(t, "127.0.0.1:0", func(c *Config) {
				c.Store = store
				for range history.Clients {
					one := newCutter(t, 15_000)
					cutters = append(cutters, one)
					c.Hosts = append(c.Hosts, one.listener.Addr().String())
				}
			})
			token := strings.TrimPrefix(s.create("all", []string{"*"}, access.Enqueue, access.Work), "Bearer ")
			next := 0
			return func(string) lineartest.Calls {
				one := cutters[next]
				next++
				one.to.Store(strings.TrimPrefix(s.base, "http://"))
				client, err := remote.New(remote.Config{URL: "http://" + one.listener.Addr().String(), Token: token,
					Patience: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = client.Close() })
				return callsOf(client, one)
			}, func() { _ = s.stop() }
		}
		for what, n := range history.Check(t) {
			counts[what] += n
		}
		for _, c := range cutters {
			cuts += c.cuts.Load()
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d connections were cut: %v", cuts, counts)
	if names := missing(); names != nil {
		t.Errorf("never answered: %q", names)
	}
	if cuts == 0 {
		t.Error("no connection was cut")
	}
}

// callsOf asks by client, whose connections c cuts.
func callsOf(client *remote.Client, c *cutter) lineartest.Calls {
	seen := int32(0)
	return lineartest.Calls{
		Enqueue: func(ctx context.Context, e commands.Enqueue) (commands.Enqueued, error) {
			jobs, err := client.Enqueue(ctx, "", e)
			if err != nil {
				return commands.Enqueued{}, err
			}
			return jobs[0], nil
		},
		Claim: client.Claim,
		Owner: func(ctx context.Context, j projection.Job, command commands.Command) (projection.Job, error) {
			after, err := client.Apply(ctx, "", j.ID, command)
			if h, ok := command.(commands.Heartbeat); ok && err == nil {
				after.Token = h.Token // the owner knows it
			}
			return after, err
		},
		Resent: func() int {
			before := seen
			seen = c.cuts.Load()
			return int(seen - before)
		},
	}
}
