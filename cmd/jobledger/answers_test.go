package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/files"
	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/commands/load"
	"jobledger/ledger/ledgertest"
	"jobledger/ledger/proof"
	"jobledger/testdata/oracletest"
)

// knownDifference is an answer that is not that of the oracle. The list may only shrink: one that does not
// occur any more fails the test.
type knownDifference struct {
	question, surface, ledger string // patterns of path.Match
	why                       string
	short                     bool // with -answers the histories are longer, and do not show it
}

var everyAnswer = flag.Bool("answers", false,
	"the differential test at all of its moments, its mutants, and pages at 200 of theirs")

// answersSize is few, or with -answers all.
func answersSize(few, all int) int {
	if *everyAnswer {
		return all
	}
	return few
}

// others reports that a run is of the long tier, which asks about what "go test ./..." passes over.
func others() bool { return ledgertest.Long() && !*everyAnswer }

// askedOf returns the elements about which this run asks: every few-th, in the long tier those between them,
// and with -answers every most-th, or with -long all.
func askedOf[T any](all []T, few, most int) (some []T) {
	if !others() {
		return ledgertest.Sample(all, answersSize(few, most))
	}
	for i, one := range all {
		if i%few != 0 {
			some = append(some, one)
		}
	}
	return some
}

// TestAnswersAreThoseOfTheExport asks three histories every question at many moments and about many windows:
// the command line, the HTTP API and the Go API, of the ledger, of its copies by replay and by import, and of
// what is left of it after archive. Each answer is the one that a naive fold of the exported lines gives; see
// package oracletest.
func TestAnswersAreThoseOfTheExport(t *testing.T) {
	t.Parallel()
	found := &differences{first: make(map[string]string), count: make(map[string]int)}
	t.Run("histories", func(t *testing.T) {
		for _, h := range histories {
			t.Run(h.name, func(t *testing.T) {
				t.Parallel()
				compareAnswers(t, h.make(t), found)
			})
		}
	})
	found.check(t)
}

var histories = []struct {
	name string
	make func(*testing.T) *scenario
}{{"night", nightHistory}, {"generated", generatedHistory}, {"keyframes", keyframedHistory}}

// differences are answers that are not those of the oracle, by question, surface and ledger.
type differences struct {
	sync.Mutex
	asked int
	first map[string]string
	count map[string]int
}

func (d *differences) add(question, surface, ledger, text string) {
	d.Lock()
	defer d.Unlock()
	key := question + " | " + surface + " | " + ledger
	if d.count[key]++; d.first[key] == "" {
		d.first[key] = text
	}
}

// check reports the differences that are not known, and those that are known and do not occur.
func (d *differences) check(t *testing.T) {
	t.Helper()
	occurs := make([]bool, len(knownDifferences))
	for _, key := range slices.Sorted(maps.Keys(d.count)) {
		known := false
		for i, k := range knownDifferences {
			if ok, err := path.Match(k.question+" | "+k.surface+" | "+k.ledger, key); err != nil || ok {
				check(t, err)
				known, occurs[i] = true, true
			}
		}
		if !known {
			t.Errorf("%s: %d times, first\n%s", key, d.count[key], d.first[key])
		}
	}
	for i, k := range knownDifferences {
		if !occurs[i] && !(k.short && *everyAnswer) && !others() {
			t.Errorf("%s | %s | %s (%s) does not differ any more: remove it from the list", k.question, k.surface,
				k.ledger, k.why)
		}
	}
	t.Logf("%d answers compared", d.asked)
}

// compareAnswers asks the ledger of s and copies of it.
func compareAnswers(t *testing.T, s *scenario, found *differences) {
	code, export, messages := s.run(0, "export", "--format", "jsonl")
	if code != 0 {
		t.Fatalf("export: exit %d: %s", code, messages)
	}
	truth, err := oracletest.Read([]byte(export), s.Now)
	check(t, err)
	t.Logf("%d events", len(truth.Events))
	m := momentsOf(truth)

	ledger := newAsked(t, "ledger", s, "", truth, found)
	ledger.compare("totals", "metrics", "/metrics", ledger.metrics(), truth.Totals(), "")
	for _, q := range questionsAt(truth, "") {
		ledger.ask(q)
	}
	for _, at := range askedOf(m.moments, 2, 1) {
		for _, q := range questionsAt(truth, at) {
			ledger.ask(q)
		}
	}
	for _, w := range askedOf(m.windows, 2, 1) {
		for _, q := range questionsWithin(w[0], w[1]) {
			ledger.ask(q)
		}
	}

	imported := newAsked(t, "import", importedCopy(t, s, export), "", truth, found)
	imported.wants = ledger.wants
	for _, at := range askedOf(m.moments, 2, 9) {
		for _, q := range questionsAt(truth, at) {
			imported.ask(q)
		}
	}
	for _, w := range askedOf(m.windows, 2, 9) {
		for _, q := range questionsWithin(w[0], w[1]) {
			imported.ask(q)
		}
	}

	for i, at := range askedOf(m.positions, 1, 4) {
		file := filepath.Join(t.TempDir(), fmt.Sprint("replayed", i, ".db"))
		if code, _, messages := s.run(0, "replay", "--as-of", at, "--into", file); code != 0 {
			t.Fatalf("replay --as-of %s: exit %d: %s", at, code, messages)
		}
		of := *s.Scenario
		of.Service = &commands.Service{Store: ledgertest.OpenAt(t, file)}
		copied := &scenario{&of}
		pos := truth.At(at)
		then := truth.Until(pos.Pos, pos.At)
		replayed := newAsked(t, "replay", copied, "", then, found)
		for _, q := range questionsAt(then, "") {
			replayed.ask(q)
		}
		for _, q := range questionsWithin("", "") {
			if !strings.HasPrefix(q.path, "/events") { // of the copy itself
				replayed.ask(q)
			}
		}
	}

	if big := len(truth.Events) > 2000; big && !*everyAnswer {
		return // each answer of a command about what has left takes a copy of all of it
	}
	archived := importedCopy(t, s, export)
	dir := filepath.Join(t.TempDir(), "archive")
	archived.leaveBlocks(dir, s.Now.Sub(truth.Events[len(truth.Events)*2/3].At))
	left := newAsked(t, "archive", archived, dir, truth, found)
	left.wants = ledger.wants
	end := fmt.Sprintf("pos:%d", truth.Tail()) // after what has left: the ledger alone is asked
	for _, at := range append(askedOf(m.moments, 2, 6), end) {
		for _, q := range questionsAt(truth, at) {
			left.ask(q)
		}
	}
	for _, w := range askedOf(m.windows, 1, 6) {
		for _, q := range questionsWithin(w[0], w[1]) {
			left.ask(q)
		}
	}
}

// importedCopy imports what export wrote of s into a ledger of its own.
func importedCopy(t *testing.T, s *scenario, export string) *scenario {
	t.Helper()
	copied := newScenario(t)
	copied.Now = s.Now
	lines := files.Lines(io.NewSectionReader(strings.NewReader(export), 0, int64(len(export))))
	_, err := load.Import(t.Context(), copied.Service, "cli:test", "export.jsonl", lines, nil)
	check(t, err)
	return copied
}

// leaveBlocks archives what is older than the age old in the folder dir, a few blocks a file, and removes it.
func (s *scenario) leaveBlocks(dir string, old time.Duration) {
	s.T.Helper()
	options := archive.Options{Dir: dir, Actor: "cli:test", OlderThan: old, Most: 4 * proof.BlockSize}
	for {
		due, err := archive.Due(s.T.Context(), s.Store, old)
		if errors.Is(err, archive.ErrNothing) {
			break
		}
		check(s.T, err)
		_, err = archive.Close(s.T.Context(), s.Service, due.Hi, options)
		check(s.T, err)
	}
	m := archive.Removal{Service: s.Service, Dir: dir, Actor: "cli:test", OlderThan: old}
	report, err := m.All(s.T.Context(), nil)
	check(s.T, err)
	if report.Jobs == 0 {
		s.T.Fatal("no job has left")
	}
}
