package main

import (
	"math"
	"testing"

	"jobledger/cmd/jobledger/internal/find"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/projection/query"
)

func TestReaderStopsAtLimit(t *testing.T) {
	store := ledgertest.Open(t)
	service := &commands.Service{Store: store}
	if _, err := service.Enqueue(t.Context(), "cli:ada@build7", threeJobs()...); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		limit, taken int
		more         bool
	}{{0, 3, false}, {1, 1, true}, {2, 2, true}, {3, 3, false}, {4, 3, false}, {math.MaxInt, 3, false}} {
		jobs := find.Reader{Store: store, Limit: tt.limit}
		for _, err := range jobs.Jobs(t.Context(), query.Jobs{}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if jobs.Taken != tt.taken || jobs.More != tt.more {
			t.Errorf("limit %d: %d jobs, more: %v; want %d, %v", tt.limit, jobs.Taken, jobs.More, tt.taken, tt.more)
		}
		events := find.Reader{Store: store, Limit: tt.limit}
		filter := ledger.Filter{Until: 3}
		for e, err := range events.Events(t.Context(), &filter) {
			if err != nil || filter.After != e.Pos {
				t.Fatalf("limit %d: event %d, after %d, %v", tt.limit, e.Pos, filter.After, err)
			}
		}
		if events.Taken != tt.taken || events.More != tt.more {
			t.Errorf("limit %d: %d events, more: %v; want %d, %v", tt.limit, events.Taken, events.More, tt.taken,
				tt.more)
		}
	}
}

func threeJobs() []commands.Enqueue {
	return []commands.Enqueue{{Queue: "mail"}, {Queue: "mail"}, {Queue: "web"}}
}
