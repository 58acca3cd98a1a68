package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"jobledger/commands"
	"jobledger/commands/jobledgertest"
	"jobledger/commands/outbox"
	_ "jobledger/ledger/ledgertest"
)

func newShop(t *testing.T) *Shop {
	shop, err := openShop(t.Context(), filepath.Join(t.TempDir(), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shop.db.Close() })
	return shop
}

func (s *Shop) parcels(t *testing.T) (n int) {
	if err := s.db.QueryRow(`SELECT count(*) FROM parcels`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestOrderIsShippedOnce(t *testing.T) {
	shop, l := newShop(t), jobledgertest.New(t)
	for range 2 { // the second has the number of the first, and is refused with its job
		r := httptest.NewRequest("POST", "/orders", strings.NewReader(`{"number":17,"to":"Ada"}`))
		shop.pages().ServeHTTP(httptest.NewRecorder(), r)
	}
	moved, err := (&outbox.Relay{Service: l.Service, From: shop.db}).Drain(t.Context())
	if err != nil || moved.Jobs != 1 {
		t.Fatalf("moved %+v, %v", moved, err)
	}
	l.RunToEnd(shop.jobs())
	if shop.parcels(t) != 1 {
		t.Errorf("%d parcels", shop.parcels(t))
	}
}

func TestRetriedJobShipsNothing(t *testing.T) {
	shop, l := newShop(t), jobledgertest.New(t)
	job := l.Run(shop.jobs(), commands.Enqueue{Queue: "ship", Payload: []byte(`{"number":17,"to":"Ada"}`)})
	if _, err := l.Apply(t.Context(), "test", job.ID, commands.Retry{}); err != nil {
		t.Fatal(err)
	}
	l.RunToEnd(shop.jobs())
	l.RequireKinds(job.ID, "enqueued claimed succeeded retried claimed succeeded")
	if shop.parcels(t) != 1 {
		t.Errorf("%d parcels", shop.parcels(t))
	}
	bad := l.Run(shop.jobs(), commands.Enqueue{Queue: "ship", Payload: []byte(`{"number":18}`)})
	l.RequireFailed(bad.ID, "no_recipient")
}

func TestBadOrderIsRefused(t *testing.T) {
	answer := httptest.NewRecorder()
	newShop(t).pages().ServeHTTP(answer, httptest.NewRequest("POST", "/orders", strings.NewReader("x")))
	if answer.Code != http.StatusBadRequest {
		t.Errorf("got %d", answer.Code)
	}
}
