package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands/archive"
	"jobledger/ledger/ledgertest"
)

// A ledger with an archive policy keeps its size under load and faults, and loses nothing: every event is in
// it or in a file of the archive, and each acknowledged command among these.
//
//	go test ./cmd/jobledger -v -run SoakOfArchive -timeout 0 -soak 10m
func TestSoakOfArchive(t *testing.T) {
	ledgertest.Slow(t)
	soakOnce(t, ledgertest.SoakFor(t, time.Second, time.Second, soakReserve), true)
}

// oldJobs are enqueued and cancelled before the load, so that there is something to archive in a short one.
const oldJobs = 200

// setPolicy sets the archive policy.
func (s *soak) setPolicy() {
	if !s.archives {
		return
	}
	s.run("archive", "--policy", "older-than "+s.age()+", logs remove")
	var lines strings.Builder
	var names []string
	for n := range oldJobs {
		name := fmt.Sprint("old-", n)
		names = append(names, name)
		fmt.Fprintf(&lines, `{"queue":"a","key":%q,"payload":%q}`+"\n", name, s.newJob(name, s.dice("old", n)))
	}
	out, _ := s.do("producer", lines.String(), []string{"enqueue", "-q", "a", "--jsonl", "-"})
	ids := strings.Fields(out)
	if len(ids) != oldJobs {
		s.Fatalf("%d jobs enqueued: %s", len(ids), out)
	}
	for i, id := range ids {
		s.acknowledge(ack{Kind: "enqueued", Job: id, Name: names[i]}, ack{Kind: "cancelled", Job: id})
	}
	s.run(append([]string{"cancel"}, ids...)...)
}

// age is that of what is archived.
func (s *soak) age() string {
	if s.short {
		return "500ms"
	}
	return "20s"
}

// events is how many a file of the policy has.
func (s *soak) events() string {
	if s.short {
		return "256"
	}
	return "1024"
}

// archive runs the command as cron would, besides the policy, and checks the files.
func (s *soak) archive() {
	dice := s.dice("archive", 0)
	for n := 0; s.underLoad(); n++ {
		_, code := s.do("archive", "", []string{"archive", "--older-than", s.age(), "--logs", "remove"},
			cli.ExitNothing, cli.ExitConflict)
		s.counted(fmt.Sprint("archives that ended with ", code), 1)
		if n%8 == 0 {
			s.do("reader", "", []string{"archive", "check"}, cli.ExitNothing)
		}
		upTo := 2000
		if s.short {
			upTo = 300
		}
		s.pause(time.Duration(dice.IntN(upTo)) * time.Millisecond)
	}
}

// size is what a ledger takes at some time.
type size struct {
	after   time.Duration // since the load began
	file    int64         // bytes
	archive int64         // bytes in the folder of the archive
	files   int           // there
}

// measure adds a size, unless it did so within the last second.
func (s *soak) measure() {
	after := time.Since(s.began)
	if !s.archives || len(s.sizes) > 0 && after-s.sizes[len(s.sizes)-1].after < time.Second {
		return
	}
	info, err := os.Stat(s.path("jobledger.db"))
	if err != nil {
		s.faulty("%v", err)
		return
	}
	now := size{after: after, file: info.Size()}
	names, _ := filepath.Glob(s.path("jobledger.db"+archive.Suffix) + "/*.jsonl.gz")
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			now.files++
			now.archive += info.Size()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sizes = append(s.sizes, now)
}

// grownMost is how much larger the file may be in the second half of a soak than it was in the first.
const grownMost = 1.5

// archiveAll archives whatever has ended.
func (s *soak) archiveAll() {
	if s.archives {
		s.do("archive", "", []string{"archive", "--older-than", "0s", "--logs", "remove"}, cli.ExitNothing)
	}
}

// checkArchive checks the files of the archive, that something left the ledger, and that it kept its size.
func (s *soak) checkArchive() {
	if !s.archives {
		return
	}
	if out, code := s.do("reader", "", []string{"archive", "check"}); code != 0 {
		s.faulty("archive check ended with %d: %s", code, out)
	}
	if s.left() == 0 {
		s.faulty("no job has left the ledger")
	}
	first, second := s.largest()
	if !s.short && s.lasted >= 2*time.Minute && float64(second) > grownMost*float64(first) {
		s.faulty("the file had at most %d bytes in the first half, and %d in the second", first, second)
	}
}

// left returns how many jobs have left the ledger.
func (s *soak) left() (n int) {
	for _, j := range s.history.jobs {
		if j.gone {
			n++
		}
	}
	return n
}

// largest returns the largest size of the file in the first half of the load and in the second.
func (s *soak) largest() (first, second int64) {
	for _, m := range s.sizes {
		if m.after < s.lasted/2 {
			first = max(first, m.file)
		} else {
			second = max(second, m.file)
		}
	}
	return first, second
}

// archiveRows are those of the table that only a soak with archives has.
func (s *soak) archiveRows(row func(name, format string, args ...any)) {
	if !s.archives || len(s.sizes) == 0 {
		return
	}
	row("archived and removed", "what ended more than %s before: %d jobs", s.age(), s.left())
	row("runs of `archive`, besides the policy", "%d that moved something, %d with nothing to do, %d that "+
		"another overtook, %d asked to try again, %d killed", s.count["archives that ended with 0"],
		s.count["archives that ended with 3"], s.count["archives that ended with 6"],
		s.count["archives that ended with 75"], s.count["archives that ended with -1"])
	for _, part := range []int{1, 2, 4, 6, 8} { // eighths of the time
		m := s.sizes[(len(s.sizes)-1)*part/8]
		row("after "+m.after.Round(time.Second).String(), "ledger %s, archive %s in %s", mib(m.file),
			mib(m.archive), words.Count(int64(m.files), "file"))
	}
	first, second := s.largest()
	row("the ledger's file at its largest, first and second half", "%s, **%s**", mib(first), mib(second))
}

func mib(bytes int64) string { return fmt.Sprintf("%.2f MiB", float64(bytes)/(1<<20)) }
