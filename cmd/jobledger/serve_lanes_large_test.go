package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// The workers of the large day, and their slots. Each slot has a claim every dayTurn.
const (
	dayWorkers = 48
	daySlots   = 4
	dayTurn    = 63 * time.Second
)

// makeDay makes claims of 48 workers that fill so much time, of which one in 25 fails and one in 1,000 is
// given back, and returns how many there are and when the last of them ended.
func makeDay(t *testing.T, store *ledger.Store, long time.Duration) (claims int, end time.Time) {
	t.Helper()
	now, random, ids := ledgertest.Epoch, rand.New(rand.NewPCG(8, 48)), 0
	store.Now = func() time.Time { return now }
	service := &commands.Service{Store: store, NewID: func() string {
		ids++
		return fmt.Sprintf("01KDY9FY88TH%014d", ids)
	}}
	zero := 0
	for begin := now; now.Sub(begin) < long; {
		round := now
		jobs := make([]commands.Enqueue, dayWorkers*daySlots)
		for i := range jobs {
			jobs[i] = commands.Enqueue{Queue: []string{"mail", "render"}[i%2]}
		}
		if _, err := service.Enqueue(t.Context(), "cli:ada@build7", jobs...); err != nil {
			t.Fatal(err)
		}
		var held []projection.Job
		for w := range dayWorkers {
			got, err := service.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"mail", "render"},
				Worker: event.Worker{Name: fmt.Sprintf("w%02d", w), Host: fmt.Sprintf("host%d", w/8), PID: 4000 + w,
					Boot: fmt.Sprintf("01KDY9FY88BT%014d", w), Version: "v7"},
				Lease: time.Hour, Limit: daySlots})
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, got...)
			now = now.Add(time.Duration(random.IntN(400)) * time.Millisecond)
		}
		claims += len(held)
		random.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
		for beat := range 4 {
			now = now.Add(time.Duration(5+random.IntN(8)) * time.Second)
			var ops []commands.Op
			for _, j := range held[beat*len(held)/4 : (beat+1)*len(held)/4] {
				var c commands.Command = commands.Succeed{Token: j.Token, ExitCode: &zero}
				if random.IntN(25) == 0 {
					c = commands.Fail{Token: j.Token, Code: "smtp_421", NoRetry: true}
				} else if random.IntN(1000) == 0 {
					c = commands.Release{Token: j.Token}
				}
				ops = append(ops, commands.Op{Job: j, Command: c})
			}
			if _, err := service.ApplyBatch(t.Context(), "worker:w00", ops); err != nil {
				t.Fatal(err)
			}
		}
		if next := round.Add(dayTurn); next.After(now) {
			now = next
		}
	}
	return claims, now
}

// TestLanesOfALargeDayAreSmall measures the answer that a browser gets for three hours of 48 busy workers,
// some 32,000 claims, and with -answers for a day: at most 2 MB before compression, and every claim in one of
// the bars.
func TestLanesOfALargeDayAreSmall(t *testing.T) {
	ledgertest.OfSQLite(t) // the other engine gives the same claims
	if !ledgertest.Long() {
		t.Skip("it makes 32,000 claims: it runs with -long")
	}
	t.Parallel()
	store := ledgertest.OpenAt(t, filepath.Join(t.TempDir(), "day.db"))
	hours := answersSize(3, 24)
	claims, end := makeDay(t, store, time.Duration(hours)*time.Hour)
	if claims < 10_400*hours {
		t.Fatalf("there are %d claims, want some %d", claims, 10_900*hours)
	}
	_, get := serveOn(t, store, func() time.Time { return end.Add(time.Second) })
	for _, px := range []int{1200, 3840} {
		query := url.Values{"from": {ledgertest.Epoch.UTC().Format(time.RFC3339)}, "to": {end.UTC().Format(
			time.RFC3339Nano)}, "px": {fmt.Sprint(px)}}
		status, _, body := get("/api/v1/lanes?"+query.Encode(), "Accept-Encoding", "identity")
		if status != http.StatusOK {
			t.Fatalf("%d: %.300s", status, body)
		}
		var l struct {
			Claims int
			Lanes  []struct{}
			Count  []int
		}
		if err := json.NewDecoder(strings.NewReader(body)).Decode(&l); err != nil {
			t.Fatal(err)
		}
		all := 0
		for _, n := range l.Count {
			all += n
		}
		t.Logf("%d pixels: %d claims, %d bars, %d bytes", px, l.Claims, len(l.Count), len(body))
		if len(body) > 2_000_000 || l.Claims != claims || all != claims || len(l.Lanes) != dayWorkers {
			t.Errorf("%d pixels: %d bytes for %d claims of %d workers, %d of them in bars; want at most 2,000,000, "+
				"and all of %d claims of %d workers", px, len(body), l.Claims, len(l.Lanes), all, claims, dayWorkers)
		}
	}
	commandstest.Verify(t, store)
}
