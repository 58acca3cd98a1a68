//go:build unix

package main

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/ledger/ledgertest"
)

// fields of the header of a SQLite file: where each begins, how long it is, and what it is set to
// (https://sqlite.org/fileformat2.html#the_database_header).
var headerFields = []struct {
	name     string
	at, size int
	values   []int64
}{
	{"magic", 0, 4, []int64{0, 0x53514c00}},
	{"page size", 16, 2, []int64{0, 1, 3, 512, 1024, 8192, 65535}},
	{"write format", 18, 1, []int64{0, 1, 3, 255}},
	{"read format", 19, 1, []int64{0, 1, 3, 255}},
	{"reserved space", 20, 1, []int64{1, 200, 255}},
	{"payload fractions", 21, 3, []int64{0, -1}},
	{"change counter", 24, 4, []int64{0, -1}},
	{"size in pages", 28, 4, []int64{0, 1, 1 << 30, -1}},
	{"first free page", 32, 4, []int64{1, 2, -1}},
	{"free pages", 36, 4, []int64{1, -1}},
	{"schema cookie", 40, 4, []int64{0, -1}},
	{"schema format", 44, 4, []int64{0, 1, 2, 3, 5, -1}},
	{"cache size", 48, 4, []int64{1, -1, 1 << 30}},
	{"largest root page", 52, 4, []int64{0, 1, -1}},
	{"text encoding", 56, 4, []int64{0, 2, 3, 4, -1}},
	{"user version", 60, 4, []int64{-1 << 31, -5, -1, 0, 1, 3, 99, 1<<31 - 1}},
	{"incremental vacuum", 64, 4, []int64{0, 2}},
	{"application id", 68, 4, []int64{0, 1, -1}},
	{"reserved", 72, 4, []int64{-1}},
	{"version valid for", 92, 4, []int64{0, -1}},
	{"written by", 96, 4, []int64{0, -1}},
}

// aSmallFile returns the contents of a closed ledger with a few jobs.
func aSmallFile(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.db")
	for _, words := range [][]string{{"enqueue", "-q", "mail", "--key", "k1", "hello"},
		{"enqueue", "-q", "mail", "x"},
		{"claim", "-q", "mail", "--worker", "w1"}, {"pause", "-q", "reports"}} {
		if code, said := atDawn(path, words...); code != cli.ExitOK {
			t.Fatalf("%v: exit %d: %s", words, code, said)
		}
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// TestAttackHeaders opens files with one altered field of the header, and files with several random bytes in
// the header. Each command gives a clear answer, and a refused command writes nothing.
func TestAttackHeaders(t *testing.T) {
	t.Parallel()
	base := aSmallFile(t)
	tally := make(map[int]int)
	for _, f := range headerFields {
		for _, value := range ledgertest.Sample(f.values, 2) {
			content := bytes.Clone(base)
			var number [8]byte
			binary.BigEndian.PutUint64(number[:], uint64(value))
			copy(content[f.at:], number[8-f.size:])
			if !bytes.Equal(content, base) {
				attackFile(t, fmt.Sprintf("%s %d", f.name, value), content, tally)
			}
		}
	}
	dice := rand.New(rand.NewPCG(*flipSeed, 2))
	for i := range attacks(10, 10) {
		content := bytes.Clone(base)
		for range 1 + dice.IntN(4) {
			content[16+dice.IntN(84)] = byte(dice.IntN(256))
		}
		attackFile(t, fmt.Sprintf("-flip-seed %d, header %d", *flipSeed, i), content, tally)
	}
	t.Logf("exit codes: %v", tally)
	if tally[cli.ExitOK] == 0 || tally[cli.ExitUnexpected] == 0 || tally[cli.ExitUsage] == 0 {
		t.Errorf("this is not how it falls out: %v", tally)
	}
}

// TestAttackSchemas does the same with the rows of sqlite_schema.
func TestAttackSchemas(t *testing.T) {
	t.Parallel()
	base := aSmallFile(t)
	tally := make(map[int]int)
	dice := rand.New(rand.NewPCG(*flipSeed, 3))
	var places []int
	object := regexp.MustCompile(`CREATE (TABLE|INDEX|UNIQUE|VIEW|TRIGGER)[^\x00]+`)
	for _, m := range object.FindAllIndex(base, -1) {
		for at := m[0]; at < m[1]; at++ {
			places = append(places, at)
		}
	}
	if len(places) < 1000 {
		t.Fatalf("the schema has %d bytes", len(places))
	}
	for i := range attacks(10, 10) {
		content := bytes.Clone(base)
		at := places[dice.IntN(len(places))]
		content[at] = " \x00(),;'\"=aZ0\xff"[dice.IntN(13)]
		attackFile(t, fmt.Sprintf("-flip-seed %d, schema %d: byte %d", *flipSeed, i, at), content, tally)
	}
	t.Logf("exit codes: %v", tally)
}

// TestRebuildRefusesForgedTables rebuilds files in which the definition of a table is one that SQLite reads
// but never writes, and that could be mistaken for a trigger.
func TestRebuildRefusesForgedTables(t *testing.T) {
	base := aSmallFile(t)
	for table, forgery := range map[string][2]string{
		"sqlite_sequence": {"CREATE TABLE sqlite_sequence(", "CREATE table sqlite_sequence("},
		"bodies":          {"CREATE TABLE bodies (", "CREATE\tTABLE bodies ("},
	} {
		path := filepath.Join(t.TempDir(), "jobs.db")
		content := bytes.ReplaceAll(base, []byte(forgery[0]), []byte(forgery[1]))
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		code, said := atDawn(path, "rebuild")
		if code != cli.ExitDiscrepancy || !strings.Contains(said, "the table "+table+" was forged") ||
			rawText().MatchString(said) {
			t.Errorf("%s: exit %d: %s", table, code, said)
		}
		if code, said := atDawn(path, "list"); code != cli.ExitOK {
			t.Errorf("%s: list: exit %d: %s", table, code, said)
		}
	}
}

var attackRounds = flag.Int("attacks", 0,
	"so many forged histories, headers and schemas each; the default depends on the tier")

// attacks returns the number of attacks: -long does not increase it.
func attacks(short, standard int) int {
	if *attackRounds > 0 {
		return *attackRounds
	}
	return ledgertest.Size(short, standard, standard)
}

// rawText matches messages that only SQLite or Go would print.
var rawText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`goroutine|runtime error|slice bounds|no such trigger|Scan error`)
})

// attackFile runs commands on copies of a file.
func attackFile(t *testing.T, what string, content []byte, tally map[int]int) {
	t.Helper()
	folder := t.TempDir()
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "jobs.db")
	commands := [][]string{{"enqueue", "-q", "mail", "y"}, {"verify"}, {"doctor"}, {"restore", path}}
	if ledgertest.Long() {
		commands = append(commands, []string{"claim", "-q", "mail"}, []string{"list"},
			[]string{"rebuild"}, []string{"export"})
	}
	for _, words := range commands {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		var code int
		var said string
		db := path
		if words[0] == "restore" {
			db += ".restored"
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			code, said = atDawn(db, words...)
		}()
		select {
		case <-done:
		case <-time.After(2 * time.Minute):
			t.Fatalf("%s: %s does not end", what, words[0])
		}
		tally[code]++
		codes := []int{cli.ExitOK, cli.ExitUnexpected, cli.ExitUsage,
			cli.ExitNothing, cli.ExitDiscrepancy, cli.ExitBusy}
		if !slices.Contains(codes, code) || code != cli.ExitOK && !saysWhy(said) ||
			rawText().MatchString(said) {
			t.Errorf("%s: %s: exit %d: %s", what, words[0], code, said)
		}
		if testing.Verbose() && code != cli.ExitOK {
			t.Logf("%s: %s: exit %d: %s", what, words[0], code, strings.ReplaceAll(said, folder, ""))
		}
		refused := code != cli.ExitOK && words[0] != "rebuild"
		if now, err := os.ReadFile(path); refused && (err != nil || !bytes.Equal(now, content)) {
			t.Errorf("%s: %s ended with %d, and the file was changed: %v", what, words[0], code, err)
		}
		names, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if err := os.RemoveAll(filepath.Join(folder, name.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
}
