package crontab_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/crontab"
)

const before = `MAILTO=ada
# a comment
30 2 * * * /usr/local/bin/backup all
	*/5 * * * * poll%x
@reboot tunnel
0 0 * * * stays
`

var taken = map[int]string{3: "backup", 4: "poll"}

// What is taken over is a comment for cron, and can still be read with its settings.
func TestTakeAndFinish(t *testing.T) {
	at := time.Date(2026, 11, 27, 14, 3, 10, 0, time.UTC)
	pending := crontab.Take(before, taken, at, "'/x/jobledger' --db '/a%b' schedule import crontab --finish")
	const want = `MAILTO=ada
# a comment
#jobledger+ 2026-11-27T14:03:10Z backup: 30 2 * * * /usr/local/bin/backup all
#jobledger+ 2026-11-27T14:03:10Z poll: 	*/5 * * * * poll%x
@reboot tunnel
0 0 * * * stays
* * * * * '/x/jobledger' --db '/a\%b' schedule import crontab --finish # jobledger: finishes the take-over
`
	if pending != want {
		t.Errorf("got\n%s\nwant\n%s", pending, want)
	}
	waiting, guarded := crontab.PendingLines(pending)
	if !guarded || !reflect.DeepEqual(waiting, []crontab.Waiting{{"backup", at}, {"poll", at}}) {
		t.Error("pending:", waiting, guarded)
	}
	finished := crontab.Finish(pending)
	if waiting, guarded := crontab.PendingLines(finished); guarded || waiting != nil {
		t.Error("pending after Finish:", waiting, guarded)
	}
	if again := crontab.Finish(finished); again != finished {
		t.Errorf("finished twice is\n%s", again)
	}
	was, err := crontab.Read(before, false)
	if err != nil {
		t.Fatal(err)
	}
	now, err := crontab.Read(finished, false)
	if err != nil {
		t.Fatal(err)
	}
	for i := range was {
		was[i].Name = taken[was[i].Number]
		if was[i].Name != "" {
			was[i].State = crontab.Taken
		}
	}
	if !reflect.DeepEqual(was, now) {
		t.Errorf("read as\n%+v, before as\n%+v", now, was)
	}
}

// A crontab that says the same has the same names, whatever moved in it.
func TestNamesStay(t *testing.T) {
	names := func(text string, known []crontab.Known, others ...string) (names []string, now []crontab.Known) {
		lines, err := crontab.Read(text, false)
		if err != nil {
			t.Fatal(err)
		}
		crontab.Name(lines, known, others)
		for _, l := range lines {
			names = append(names, l.Name)
			now = append(now, crontab.Known{Name: l.Name, When: l.When, Command: l.Command})
		}
		return names, now
	}
	first, known := names("0 1 * * * mail a\n0 2 * * * mail b\n0 3 * * * mail a\n", nil, "mail-2")
	if want := []string{"mail", "mail-3", "mail-4"}; !slices.Equal(first, want) {
		t.Errorf("at first: %q, want %q", first, want)
	}
	moved, _ := names("0 9 * * * mail c\n5 2 * * * mail b\n0 3 * * * mail a\n0 1 * * * mail a\n", known,
		"mail-2")
	if want := []string{"mail-5", "mail-3", "mail-4", "mail"}; !slices.Equal(moved, want) {
		t.Errorf("after a move: %q, want %q", moved, want)
	}
	changed, _ := names("0 1 * * * mail x\n", known, "mail-2")
	if want := []string{"mail"}; !slices.Equal(changed, want) {
		t.Errorf("with another command: %q, want %q", changed, want)
	}
}

func TestProgram(t *testing.T) {
	for command, want := range map[string]string{
		"/usr/local/bin/backup all":                   "backup",
		"cd /srv/app && ./poll.sh":                    "poll",
		"A=1 B='x' exec nice_thing":                   "nice_thing",
		"python3 /opt/report.py --all":                "report",
		"bash -c 'echo x'":                            "bash",
		"test -x /usr/sbin/anacron || run-parts /etc": "run-parts",
		"[ -x /usr/bin/x ] && if [ ! -d /run/y ]; then /usr/lib/sessionclean; fi": "sessionclean",
		"true":                   "true",
		":":                      "line",
		"'/opt/Über Tool' x":     "ber",
		strings.Repeat("a", 300): strings.Repeat("a", 58),
	} {
		if got := crontab.Program(command); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

// No text makes the reader panic; what it reads as cron does, it still reads when it was taken over, and then
// cron runs none of it.
func FuzzRead(f *testing.F) {
	_, texts := sections(f, "crontabs.txt")
	for _, text := range texts {
		f.Add(text, false)
		f.Add(text, true)
	}
	f.Fuzz(func(t *testing.T, text string, system bool) {
		lines, err := crontab.Read(text, system)
		if err != nil {
			if lines != nil {
				t.Error("lines besides an error")
			}
			return
		}
		crontab.Name(lines, nil, nil)
		taken := make(map[int]string)
		for i, l := range lines {
			if l.Command == "" || strings.Contains(l.Command, "\n") {
				t.Errorf("command %q", l.Command)
			}
			if l.State == crontab.Active && !l.Reboot() {
				taken[l.Number] = l.Name
				lines[i].State = crontab.Taken
			} else if l.State == crontab.Pending {
				lines[i].State = crontab.Taken
			}
		}
		at := time.Date(2026, 11, 27, 14, 3, 10, 0, time.UTC)
		pending := crontab.Take(text, taken, at, "finish")
		waiting, guarded := crontab.PendingLines(pending)
		if len(waiting) < len(taken) || !guarded {
			t.Errorf("%d of %d are pending, guard: %t", len(waiting), len(taken), guarded)
		}
		again, err := crontab.Read(crontab.Finish(pending), system)
		if err != nil || len(again) != len(lines) {
			t.Fatalf("%d lines became %d: %v", len(lines), len(again), err)
		}
		for i, l := range again {
			want := lines[i]
			if l.Command != want.Command || l.Stdin != want.Stdin || l.When != want.When || l.State != want.State ||
				!want.Reboot() && l.Name != want.Name || !reflect.DeepEqual(l.Environment(), want.Environment()) {
				t.Errorf("%+v became %+v", want, l)
			}
		}
	})
}
