package crontab_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/crontab"
	"jobledger/commands/cron"
	_ "jobledger/ledger/ledgertest" // for -soak, which every package's tests must know
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// sections returns the parts of a file of testdata that begin with "== NAME".
func sections(t testing.TB, file string) (names []string, texts map[string]string) {
	t.Helper()
	content, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	texts = make(map[string]string)
	for _, part := range strings.Split("\n"+string(content), "\n== ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		names = append(names, name)
		if texts[name] = text; text != "" && !strings.HasSuffix(text, "\n") {
			texts[name] += "\n"
		}
	}
	return names, texts
}

// read reads a crontab of crontabs.txt.
func read(text string) ([]crontab.Line, error) {
	text, system := strings.CutPrefix(text, "system\n")
	return crontab.Read(strings.NewReplacer("␍", "\r", "␄\n", "", "␀", "\x00").Replace(text), system)
}

// What is read in each crontab of crontabs.txt is in crontabs.golden.
func TestCrontabs(t *testing.T) {
	var b strings.Builder
	names, texts := sections(t, "crontabs.txt")
	for _, name := range names {
		fmt.Fprintf(&b, "== %s\n", name)
		lines, err := read(texts[name])
		if err != nil {
			fmt.Fprintln(&b, err)
		}
		crontab.Name(lines, nil, nil)
		for _, l := range lines {
			fmt.Fprintf(&b, "%d %s: %s | %s%q", l.Number, l.Name, l.When, strings.TrimPrefix(l.User+" ", " "),
				l.Command)
			if l.Stdin != "" {
				fmt.Fprintf(&b, " < %q", l.Stdin)
			}
			for _, name := range slices.Sorted(maps.Keys(l.Environment())) {
				fmt.Fprintf(&b, " %s=%q", name, l.Environment()[name])
			}
			zone, err := l.Zone()
			if err != nil {
				t.Error(name, err)
			}
			delay, err := l.Jitter()
			if err != nil {
				t.Error(name, err)
			}
			for what, is := range map[string]bool{"on error": l.OnError, "pending": l.State == crontab.Pending,
				"taken over": l.State == crontab.Taken, "zone " + zone: zone != "",
				"delay " + delay.String(): delay != 0} {
				if is {
					fmt.Fprintf(&b, " (%s)", what)
				}
			}
			fmt.Fprintln(&b)
		}
	}
	const golden = "testdata/crontabs.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// stricter are the crontabs of which cronie takes a line that no schedule can do.
var stricter = []string{"nothing before the percent sign", "a random minute"}

// Commands and settings are those that cronie reads, as it says itself, and what it refuses is refused.
func TestReadingIsThatOfCronie(t *testing.T) {
	names, texts := sections(t, "crontabs.txt")
	_, cronie := sections(t, "read.txt")
	for _, section := range names {
		lines, err := read(texts[section])
		complains := strings.Contains(cronie[section], "cronie: ")
		if complains || slices.Contains(stricter, section) {
			if err == nil {
				t.Errorf("%s: was read as %v", section, lines)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", section, err)
			continue
		}
		lines = slices.DeleteFunc(lines, func(l crontab.Line) bool { return l.State != crontab.Active })
		var got, want []string
		for _, l := range lines {
			text := l.Text
			if l.OnError {
				text = "-n " + text
			}
			if l.Reboot() {
				text = "@reboot " + text
			}
			for _, name := range slices.Sorted(maps.Keys(l.Environment())) {
				text += "\t" + name + "=" + l.Environment()[name]
			}
			got = append(got, text)
		}
		for line := range strings.Lines(cronie[section]) {
			if strings.HasPrefix(line, "'/usr/bin/jobledger'") {
				continue // the guard
			}
			parts := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			env := slices.DeleteFunc(parts[1:], func(s string) bool {
				name, _, _ := strings.Cut(s, "=")
				return name == "LOGNAME" || name == "USER" ||
					(name == "SHELL" || name == "HOME" || name == "PATH") && !strings.Contains(texts[section], name)
			})
			slices.Sort(env)
			want = append(want, strings.Join(append(parts[:1], env...), "\t"))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", section, got, want)
		}
	}
}

// The lines of ticks.crontab tick when cronie's crond starts them: each tick of a year in three zones with
// their clock changes, as crond itself said.
func TestTicksAreThoseOfCron(t *testing.T) {
	text, err := os.ReadFile("testdata/ticks.crontab")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := crontab.Read(string(text), false)
	if err != nil {
		t.Fatal(err)
	}
	when := make(map[string]string)
	for _, l := range lines {
		when[l.Text] = l.When
	}
	table, err := os.ReadFile("testdata/ticks.txt")
	if err != nil {
		t.Fatal(err)
	}
	ticks, asked := 0, make(map[string]bool)
	for row := range strings.Lines(string(table)) {
		fields := strings.SplitN(strings.TrimSuffix(row, "\n"), " ", 6)
		if fields[0] == "#" {
			continue
		}
		zone, err := time.LoadLocation(fields[0])
		if err != nil {
			t.Fatal(err)
		}
		s, err := cron.Parse(when[fields[5]], zone)
		if err != nil {
			t.Fatal(err)
		}
		from, err := time.ParseInLocation("2006-01", fields[1], zone)
		if err != nil {
			t.Fatal(err)
		}
		asked[fields[5]] = true
		var all []byte
		count := 0
		for at := s.Next(from.Add(-time.Second)); at.Before(from.AddDate(0, 1, 0)); at = s.Next(at) {
			all = strconv.AppendInt(all, at.Unix(), 10)
			all = append(all, '\n')
			count++
		}
		digest := fmt.Sprintf("%x", sha256.Sum256(all))[:16]
		if fmt.Sprint(count) != fields[2] || digest != fields[3] {
			t.Errorf("%s: %d ticks, %s", strings.TrimSpace(row), count, digest)
		}
		ticks += count
	}
	if len(asked) != len(lines) {
		t.Errorf("the table has %d of %d lines", len(asked), len(lines))
	}
	if ticks < 100_000 {
		t.Errorf("only %d ticks were compared", ticks)
	}
}
