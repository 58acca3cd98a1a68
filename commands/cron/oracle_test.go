package cron_test

import (
	"flag"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"jobledger/commands/cron"
	"jobledger/ledger/ledgertest"
)

var seed = flag.Int64("seed", 1, "of the random expressions")

// zones have one of each sort of rule: both hemispheres, half hours, midnight, no rule, a rule that ended, a
// calendar that no rule describes, and a date line that moved.
var zones = strings.Fields(`UTC Europe/Berlin Europe/London Europe/Dublin Europe/Lisbon Europe/Chisinau
	Europe/Moscow Europe/Istanbul Atlantic/Azores America/New_York America/St_Johns America/Sao_Paulo
	America/Santiago America/Asuncion America/Havana America/Nuuk America/Scoresbysund America/Caracas
	America/Los_Angeles America/Mexico_City America/Argentina/San_Luis Asia/Beirut Asia/Gaza Asia/Jerusalem
	Asia/Tehran Asia/Kolkata Asia/Kathmandu Asia/Amman Asia/Damascus Asia/Pyongyang Asia/Tokyo
	Africa/Casablanca Africa/Cairo Africa/El_Aaiun Africa/Juba Australia/Lord_Howe Australia/Sydney
	Australia/Eucla Australia/Perth Antarctica/Troll Antarctica/Casey Pacific/Apia Pacific/Kiritimati
	Pacific/Easter Pacific/Chatham Pacific/Fakaofo Pacific/Norfolk Pacific/Fiji Chile/Continental`)

// random draws an expression and the sets of values that it stands for.
type random struct {
	*rand.Rand
	text []string
	sets [5]map[int]bool
}

func (r *random) expression() string {
	r.text, r.sets = nil, [5]map[int]bool{}
	for i, f := range [5][2]int{{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 6}} {
		r.sets[i] = make(map[int]bool)
		r.text = append(r.text, r.field(r.sets[i], f[0], f[1], []int{2, 2, 4, 5, 4}[i]))
	}
	return strings.Join(r.text, " ")
}

// field is a star more often than not where stars is large.
func (r *random) field(set map[int]bool, lo, hi, stars int) string {
	add := func(from, to, step int) {
		for v := from; v <= to; v += step {
			set[v] = true
		}
	}
	if r.Intn(6) < stars {
		if r.Intn(3) > 0 {
			add(lo, hi, 1)
			return "*"
		}
		step := 1 + r.Intn(hi-lo+1)
		add(lo, hi, step)
		return fmt.Sprint("*/", step)
	}
	var items []string
	for range 1 + r.Intn(3) {
		from := lo + r.Intn(hi-lo+1)
		to, step := from+r.Intn(hi-from+1), 1+r.Intn(hi-lo+1)
		switch r.Intn(3) {
		case 0:
			add(from, from, 1)
			items = append(items, fmt.Sprint(from))
		case 1:
			add(from, to, 1)
			items = append(items, fmt.Sprint(from, "-", to))
		default:
			add(from, to, step)
			items = append(items, fmt.Sprint(from, "-", to, "/", step))
		}
	}
	return strings.Join(items, ",")
}

// on reports whether the wall time, read as UTC, is one of the expression.
func (r *random) on(wall time.Time) bool {
	if !r.sets[0][wall.Minute()] || !r.sets[1][wall.Hour()] || !r.sets[3][int(wall.Month())] {
		return false
	}
	month, week := r.sets[2][wall.Day()], r.sets[4][int(wall.Weekday())]
	if r.text[2][0] != '*' && r.text[4][0] != '*' {
		return month || week
	}
	return month && week
}

// oracle returns the ticks from begin to end by looking at the wall each minute: at fixed hours and minutes a
// tick is when the wall first shows a time or a later one, with a star in either when it shows the time.
func (r *random) oracle(begin, end time.Time, loc *time.Location) (ticks []time.Time) {
	wallAt := func(at time.Time) time.Time {
		_, offset := at.In(loc).Zone()
		return at.Add(time.Duration(offset) * time.Second)
	}
	latest := wallAt(begin.Add(-time.Minute)) // the latest time that the wall has shown
	for at := begin.Add(-50 * time.Hour); at.Before(begin); at = at.Add(time.Minute) {
		if w := wallAt(at); w.After(latest) {
			latest = w
		}
	}
	for at := begin; at.Before(end); at = at.Add(time.Minute) {
		wall, due := wallAt(at), false
		if r.text[0][0] == '*' || r.text[1][0] == '*' {
			due = r.on(wall)
		} else {
			for ; latest.Before(wall); due = due || r.on(latest) {
				latest = latest.Add(time.Minute)
			}
		}
		if due {
			ticks = append(ticks, at)
		}
	}
	return ticks
}

// TestNextEqualsMinuteByMinute compares Next with looking at the wall each minute, most often around a moment
// at which the zone changes its clocks.
func TestNextEqualsMinuteByMinute(t *testing.T) {
	t.Parallel()
	r := &random{Rand: rand.New(rand.NewSource(*seed))}
	rounds, ticks := ledgertest.Size(100, 500, 3000), 0
	for i := range rounds {
		name := zones[i%len(zones)]
		loc := zone(t, name)
		begin := time.Date(2000+r.Intn(60), 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, r.Intn(366))
		if r.Intn(4) > 0 {
			begin = change(loc, begin).Add(-time.Duration(r.Intn(30*60)) * time.Minute)
		}
		end := begin.Add(48 * time.Hour)
		text := r.expression()
		s, err := cron.Parse(text, loc)
		if err != nil {
			continue // a day that never comes
		}
		at := begin.Add(-time.Nanosecond)
		for _, want := range append(r.oracle(begin, end, loc), end) {
			next := s.Next(at)
			if next.IsZero() || !next.Before(end) {
				next = end
			}
			if !next.Equal(want) {
				t.Fatalf("round %d: %q in %s after %s: got %s, want %s (-seed %d)", i, text, name, at,
					next.In(loc), want.In(loc), *seed)
			}
			at = want
			ticks++
		}
	}
	if ticks < rounds {
		t.Errorf("only %d ticks in %d rounds", ticks, rounds)
	}
}

// change returns a minute near which the zone changes its clocks within 200 days, or begin if it does not.
func change(loc *time.Location, begin time.Time) time.Time {
	_, before := begin.In(loc).Zone()
	for at := begin; at.Before(begin.AddDate(0, 0, 200)); at = at.Add(time.Hour) {
		if _, offset := at.In(loc).Zone(); offset != before {
			return at
		}
	}
	return begin
}

// FuzzNext holds what is true of any expression that is accepted: ticks are after the moment, in order, and
// the same whether one asks just before a tick or long before it.
func FuzzNext(f *testing.F) {
	f.Add("30 2 * * *", 1, int64(1774742400))
	f.Add("*/5 0-23/2 29 2 sun", 35, int64(1325100000))
	f.Add("@weekly", 48, int64(2240000000))
	f.Add("0 0 */31 */7 */6", 41, int64(1325100000))
	f.Fuzz(func(t *testing.T, text string, z int, unix int64) {
		loc := zone(t, zones[uint(z)%uint(len(zones))])
		s, err := cron.Parse(text, loc)
		if err != nil {
			return
		}
		const century = 100 * 365 * 24 * 60 * 60
		at := time.Unix((unix%century+century)%century, 0)
		for range 4 {
			next := s.Next(at)
			if next.IsZero() {
				return
			}
			if !next.After(at) {
				t.Fatalf("%q in %s: %s does not come after %s", text, loc, next, at)
			}
			if again := s.Next(next.Add(-time.Nanosecond)); !again.Equal(next) {
				t.Fatalf("%q in %s: %s after %s, but %s just before it", text, loc, next, at, again)
			}
			at = next
		}
	})
}

func BenchmarkNext(b *testing.B) {
	s, err := cron.Parse("30 2 * * mon-fri", zone(b, "Europe/Berlin"))
	if err != nil {
		b.Fatal(err)
	}
	at := moment(b, "2026-01-01T00:00:00Z")
	for b.Loop() {
		if at = s.Next(at); at.Year() > 2035 {
			at = moment(b, "2026-01-01T00:00:00Z")
		}
	}
}
