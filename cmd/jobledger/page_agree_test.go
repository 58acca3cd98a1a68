package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// agreed are figures of one moment, by what they are about: the value, and where it was seen first.
type agreed map[string][2]string

// see reports whether a figure is another one than elsewhere.
func (a agreed) see(t *testing.T, where, what, value string) {
	t.Helper()
	if was, ok := a[what]; ok && was[0] != value {
		t.Errorf("%s is %s on %s, and %s on %s", what, was[0], was[1], value, where)
	}
	a[what] = [2]string{value, where}
}

// seePage adds the figures of a page: what its tables count of queues, and its position.
func (a agreed) seePage(t *testing.T, path, page string) (queues []string) {
	t.Helper()
	counted := []string{"READY", "OLDEST", "LATER", "CLAIMED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED",
		"BLOCKED"}
	for _, f := range figuresOf(t, page) {
		queue := f.cell("QUEUE")
		switch {
		case f.where == "data-pos", f.where == "data-tail":
			a.see(t, path, f.where, f.text)
		case !slices.Contains([]string{"queues", "jobs by state", "jobs"}, f.where), queue == "", queue == "total":
		case slices.Contains(counted, f.column):
			a.see(t, path, strings.TrimSuffix(queue, " paused")+" "+f.column, f.text)
		case f.column == "HELD":
			queues = append(queues, strings.TrimSuffix(queue, " paused"))
			end, _, _ := strings.Cut(f.text, " of ")      // "5 of 12", of a limit
			end = end[strings.LastIndexByte(end, ' ')+1:] // of a change, "1 → 2"
			a.see(t, path, queues[len(queues)-1]+" HELD", end)
		}
	}
	return queues
}

// seeStatus adds those that programs get.
func (a agreed) seeStatus(t *testing.T, path, answer string) {
	t.Helper()
	for line := range strings.Lines(answer) {
		var q map[string]any
		check(t, json.Unmarshal([]byte(line), &q))
		count := func(field string) string { return fmt.Sprint(q[field]) }
		for field, column := range map[string]string{"ready": "READY", "scheduled": "LATER", "claimed": "CLAIMED",
			"running": "RUNNING", "succeeded": "SUCCEEDED", "failed": "FAILED", "cancelled": "CANCELLED"} {
			a.see(t, path, fmt.Sprint(q["queue"], " ", column), count(field))
		}
		a.see(t, path, fmt.Sprint(q["queue"], " HELD"), fmt.Sprint(q["claimed"].(float64)+q["running"].(float64)))
	}
}

// seeMetrics adds those that Prometheus gets, which are of now.
func (a agreed) seeMetrics(t *testing.T, answer string) {
	t.Helper()
	sample := regexp.MustCompile(`(?m)^jobledger_(queue_ready_jobs|queue_scheduled_jobs|jobs)\{queue="([^"]*)"` +
		`(?:,state="([^"]*)")?\} (\S+)$`)
	for _, m := range sample.FindAllStringSubmatch(answer, -1) {
		what := map[string]string{"queue_ready_jobs": "READY", "queue_scheduled_jobs": "LATER",
			"jobs": strings.ToUpper(m[3])}[m[1]]
		if what != "QUEUED" {
			a.see(t, "/metrics", m[2]+" "+what, m[4])
		}
	}
}

// Whatever the moment and the zone, no page says another time or figure than the next one, nor than the API
// and the metrics do. The long tier looks at 30 positions of each of two ledgers, with -answers 200.
func TestNoPageContradictsAnother(t *testing.T) {
	t.Parallel()
	night, made := importNight(t), newGenerated(t, 36)
	for range 300 {
		made.step()
	}
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 36))
	zones := []string{"Asia/Kathmandu", "America/New_York", "Australia/Lord_Howe", "Europe/Berlin", "UTC"}
	for name, of := range map[string]struct {
		s   *scenario
		now time.Time
	}{"night": {night, morning}, "generated": {made.scenario, made.Now}} {
		get := getter(t, serveStore(t, of.s.Store, func() time.Time { return of.now }))
		var tail int64
		check(t, of.s.Store.Read(t.Context(), func(tx *ledger.Tx) (err error) {
			tail, err = tx.Tail(t.Context())
			return err
		}))
		for i := range ledgertest.Size(1, 2, answersSize(15, 200)) {
			pos, tz := 1+random.Int64N(tail), zones[random.IntN(len(zones))]
			zone, err := time.LoadLocation(tz)
			check(t, err)
			at := url.Values{"at": {"pos:" + strconv.FormatInt(pos, 10)}}.Encode()
			if i == 0 {
				at = "" // now
			}
			facts := make(agreed)
			page := func(path string) (queues []string) {
				address := path + "?" + at + "&" + url.Values{"tz": {tz}}.Encode()
				status, _, page := get(address)
				if status != 200 {
					t.Fatalf("%s: %d", address, status)
				}
				timesIn(t, address, page, zone)
				if !strings.Contains(page, "are in the zone "+zone.String()) {
					t.Errorf("%s does not name its zone", address)
				}
				return facts.seePage(t, address, page)
			}
			queues := page("/")
			for _, path := range []string{"/jobs", "/queues", "/workers", "/events", "/failures", "/lanes", "/diff",
				"/incident"} {
				page(path)
			}
			for _, queue := range queues {
				page("/queues/" + url.PathEscape(queue))
			}
			_, _, answer := get("/api/v1/status?"+at, "Accept", "application/x-ndjson")
			facts.seeStatus(t, "/api/v1/status?"+at, answer)
			if at == "" {
				_, _, answer := get("/metrics")
				facts.seeMetrics(t, answer)
			}
			for _, queue := range queues {
				n := func(column string) int { n, _ := strconv.Atoi(facts[queue+" "+column][0]); return n }
				if n("HELD") != n("CLAIMED")+n("RUNNING") {
					t.Errorf("%d of %s are held, %d claimed, %d running", n("HELD"), queue, n("CLAIMED"), n("RUNNING"))
				}
			}
			if len(facts) < 2+8*len(queues) {
				t.Errorf("%s at %s: %d figures of %d queues", name, at, len(facts), len(queues))
			}
			if t.Failed() {
				t.Fatalf("%s, pos %d of %d, %s, seed %d", name, pos, tail, tz, seed)
			}
		}
	}
}
