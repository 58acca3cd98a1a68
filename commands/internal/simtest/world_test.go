package simtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"jobledger/commands/commandstest"
	"jobledger/ledger"
)

// sim is one seed of the simulation.
type sim struct {
	t      *testing.T
	seed   uint64
	broken string // the sabotage; "": none
	rng    *rand.Rand
	path   string

	commits *commandstest.Commits
	oracle  oracle
	faults  faults
	calm    bool // nothing goes wrong any more
	ids     int
	hosts   []*process

	trace         []string
	counts        map[string]int
	wrong, detail string // the first thing that was found, "" while there is none
}

// faults is how likely what is, per call or per turn; each seed has its own mixture, and some have none of a
// kind.
type faults struct {
	unsent, unanswered, undone, unheard float64 // of a call
	pause, freeze, die, jump, leap      float64 // of a turn: this process, or all of them
}

// The simulated histories are short, so that many fit into a second.
const (
	faultyTime = 3 * time.Minute
	calmTime   = 72 * time.Hour // clocks may have been a day ahead, and a backoff takes an hour
)

// errSimLost is an answer that never came.
var errSimLost = errors.New("no answer")

func unknown(err error) bool {
	return errors.Is(err, errSimLost) || errors.Is(err, ledger.ErrUnknown)
}

func (s *sim) chance(p float64) bool { return s.rng.Float64() < p }

// oneOf is one of these.
func oneOf[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// span is a time between these, often a whole number of seconds, so that moments coincide.
func (s *sim) span(from, to time.Duration) time.Duration {
	d := from + time.Duration(s.rng.Int64N(int64(to-from)+1))
	if d > 2*time.Second && s.chance(0.3) {
		return d.Truncate(time.Second)
	}
	return d.Truncate(time.Microsecond)
}

func (s *sim) newID() string {
	s.ids++
	return id(s.ids)
}

func (s *sim) newSalt(b []byte) {
	for i := range b {
		b[i] = byte(s.rng.Uint32())
	}
}

func (s *sim) say(who, format string, args ...any) {
	s.trace = append(s.trace, fmt.Sprintf("%s %-10s %s", time.Now().Format("15:04:05.000000"), who,
		fmt.Sprintf(format, args...)))
}

// find notes the first thing that is wrong.
func (s *sim) find(wrong, format string, args ...any) {
	if s.wrong == "" {
		s.wrong, s.detail = wrong, fmt.Sprintf(format, args...)
		s.say("oracle", "%s: %s", s.wrong, s.detail)
	}
}

// run is the whole history.
func (s *sim) run() {
	s.begin()
	defer s.end()
	end := time.Now().Add(faultyTime)
	for s.wrong == "" {
		p := slices.MinFunc(s.hosts, func(a, b *process) int { return a.wakes.Compare(b.wakes) })
		if !p.wakes.Before(end) {
			break
		}
		time.Sleep(time.Until(p.wakes))
		p.turn()
		s.misfortune()
	}
	s.becomeCalm()
	for deadline := time.Now().Add(calmTime); s.wrong == "" && s.oracle.open() > 0; {
		p := slices.MinFunc(s.hosts, func(a, b *process) int { return a.wakes.Compare(b.wakes) })
		if p.wakes.After(deadline) {
			s.find("stuck", "%s after the last fault: %s", calmTime, s.oracle.stuck())
			return
		}
		time.Sleep(time.Until(p.wakes))
		p.turn()
	}
}

func (s *sim) begin() {
	rate := func(most float64) float64 { // none at all in every third seed
		if s.chance(1.0 / 3) {
			return 0
		}
		return most * s.rng.Float64()
	}
	s.faults = faults{unsent: rate(0.05), unanswered: rate(0.05), undone: rate(0.05), unheard: rate(0.05),
		pause: rate(0.04), freeze: rate(0.01), die: rate(0.02), jump: rate(0.03), leap: rate(0.02)}
	s.oracle.begin(s)
	sweepers := 0
	for i := range 1 + s.rng.IntN(3) {
		w := newSimWorker(s)
		if w.sweeps != nil {
			sweepers++
		}
		s.host(fmt.Sprint("worker", i), w)
	}
	if sweepers == 0 || s.chance(0.3) {
		s.host("sweeper", &simSweeper{})
	}
	s.host("client", &simClient{})
}

// end looks at everything once more, with a Store that was opened for it.
func (s *sim) end() {
	for _, p := range s.hosts {
		p.stop()
	}
	s.oracle.end()
}

// misfortune may come after each turn.
func (s *sim) misfortune() {
	p := oneOf(s.rng, s.hosts...)
	if s.chance(s.faults.pause) {
		p.pause(s.span(0, 4*time.Minute))
	}
	if s.chance(s.faults.freeze) {
		d := s.span(0, 2*time.Minute)
		for _, p := range s.hosts {
			p.pause(d)
		}
	}
	if s.chance(s.faults.die) {
		p.die()
	}
	if s.chance(s.faults.jump) {
		p.jump(s.wrongBy())
	}
	if s.chance(s.faults.leap) {
		by := s.wrongBy()
		for _, p := range s.hosts {
			p.jump(by)
		}
	}
}

// wrongBy is how far a clock is off.
func (s *sim) wrongBy() time.Duration {
	most := oneOf(s.rng, 0, time.Second, time.Minute, time.Minute, time.Hour, time.Hour, 24*time.Hour)
	return s.span(0, most) * oneOf[time.Duration](s.rng, -1, 1)
}

// becomeCalm ends all faults: the clocks are right again, and every process that was dead or stopped goes on.
func (s *sim) becomeCalm() {
	s.say("all", "no faults from here on")
	s.calm = true
	for _, p := range s.hosts {
		p.skew = 0
		p.wakes = time.Now()
		p.start()
	}
}

func id(n int) string { return fmt.Sprintf("01KDXYZAF8%016d", n) }
