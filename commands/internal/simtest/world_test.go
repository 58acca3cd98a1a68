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
	broken string // the sabotage; empty: none
	rng    *rand.Rand
	path   string

	commits *commandstest.Commits
	oracle  oracle
	faults  faults
	calm    bool // the faults have ended
	ids     int
	hosts   []*process

	trace         []string
	counts        map[string]int
	wrong, detail string // the first finding; empty: none
}

// faults are the probabilities of faults, per call or per action; each seed has its own mixture, in which
// some are zero.
type faults struct {
	requestLost, answerLost, rolledBack, unacknowledged float64 // per call
	pause, freeze, die, jump, leap                      float64 // per action: of this process, or of all
}

// The simulated histories are short, so that many fit into a second.
const (
	faultyTime = 3 * time.Minute
	calmTime   = 72 * time.Hour // clocks may have been a day ahead, and a backoff takes an hour
)

// errSimLost represents an answer that was lost.
var errSimLost = errors.New("no answer")

func unknown(err error) bool {
	return errors.Is(err, errSimLost) || errors.Is(err, ledger.ErrUnknown)
}

func (s *sim) chance(p float64) bool { return s.rng.Float64() < p }

// oneOf returns one of these.
func oneOf[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// span returns a time between these, often a whole number of seconds, so that times coincide.
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

// find records the first finding.
func (s *sim) find(wrong, format string, args ...any) {
	if s.wrong == "" {
		s.wrong, s.detail = wrong, fmt.Sprintf(format, args...)
		s.say("oracle", "%s: %s", s.wrong, s.detail)
	}
}

// run runs the whole history.
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
		if s.archives() && s.chance(0.02) {
			s.archive()
		}
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
		if s.archives() && s.chance(0.05) {
			s.archive()
		}
	}
	s.archive()
}

func (s *sim) begin() {
	rate := func(most float64) float64 { // zero in every third seed
		if s.chance(1.0 / 3) {
			return 0
		}
		return most * s.rng.Float64()
	}
	s.faults = faults{requestLost: rate(0.05), answerLost: rate(0.05), rolledBack: rate(0.05),
		unacknowledged: rate(0.05),
		pause:          rate(0.04), freeze: rate(0.01), die: rate(0.02), jump: rate(0.03), leap: rate(0.02)}
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

// end checks everything once more, with a Store that was opened for it.
func (s *sim) end() {
	for _, p := range s.hosts {
		p.stop()
	}
	s.oracle.end()
}

// misfortune may cause a fault after each action.
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

// wrongBy returns the error of a clock.
func (s *sim) wrongBy() time.Duration {
	most := oneOf(s.rng, 0, time.Second, time.Minute, time.Minute, time.Hour, time.Hour, 24*time.Hour)
	return s.span(0, most) * oneOf[time.Duration](s.rng, -1, 1)
}

// becomeCalm ends all faults: the clocks are correct, and every process that was dead or frozen continues.
func (s *sim) becomeCalm() {
	s.say("all", "no faults from here on")
	s.calm = true
	for _, p := range s.hosts {
		p.skew = 0
		p.wakes = time.Now()
		p.start()
	}
}

func id(n int) string { return fmt.Sprintf("00000YZAF8%016d", n) }
