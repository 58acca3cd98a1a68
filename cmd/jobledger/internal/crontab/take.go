package crontab

import (
	"fmt"
	"strings"
	"time"
)

// Marks of the lines that were taken over. They are comments, for cron.
const (
	takenMark   = "#jobledger "  // and NAME: LINE
	pendingMark = "#jobledger+ " // and TIME NAME: LINE

	// guardEnd ends the line with which cron itself has an interrupted take-over finished.
	guardEnd = " # jobledger: finishes the take-over"
)

type mark struct {
	state State
	at    time.Time // of a pending one: when cron stopped to run it
	name  string
	line  string
}

// readMark reads a line that was taken over. Another comment is not ok.
func readMark(text string) (m mark, ok bool) {
	rest, pending := strings.CutPrefix(text, pendingMark)
	m.state = Taken
	if pending {
		at, after, _ := strings.Cut(rest, " ")
		t, err := time.Parse(time.RFC3339, at)
		if err != nil {
			return m, false
		}
		m.state, m.at, rest = Pending, t, after
	} else if rest, ok = strings.CutPrefix(text, takenMark); !ok {
		return m, false
	}
	m.name, m.line, ok = strings.Cut(rest, ": ")
	return m, ok && m.name != "" && !strings.ContainsAny(m.name, " \t")
}

func isGuard(text string) bool {
	return strings.HasPrefix(text, "* * * * * ") && strings.HasSuffix(text, guardEnd)
}

// eachLine returns text with each of its lines as change has it; not ok leaves the line out.
func eachLine(text string, change func(number int, line string) (string, bool)) string {
	var b strings.Builder
	number := 0
	for line := range strings.SplitAfterSeq(text, "\n") {
		if line == "" {
			continue
		}
		number++
		body, ended := strings.CutSuffix(line, "\n")
		if body, keep := change(number, body); keep {
			b.WriteString(body)
			if ended {
				b.WriteByte('\n')
			}
		}
	}
	return b.String()
}

// Take returns the crontab without the lines whose names are given, by their numbers: they are comments, with
// the moment at which cron stopped to run them. Its last line is guard, a command that cron starts each
// minute until Finish: if this process dies, cron goes on.
func Take(text string, names map[int]string, at time.Time, guard string) string {
	text = eachLine(text, func(number int, line string) (string, bool) {
		name, take := names[number]
		switch {
		case isGuard(strings.TrimLeft(line, " \t")):
			return "", false
		case take:
			line = fmt.Sprintf("%s%s %s: %s", pendingMark, at.UTC().Format(time.RFC3339), name, line)
		}
		return line, true
	})
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + "* * * * * " + strings.ReplaceAll(guard, "%", `\%`) + guardEnd + "\n"
}

// Waiting is a line that cron does not run any more, and its schedule perhaps not yet.
type Waiting struct {
	Name  string
	Since time.Time
}

// PendingLines returns the pending lines of a crontab, and whether it has a guard.
func PendingLines(text string) (waiting []Waiting, guarded bool) {
	eachLine(text, func(_ int, line string) (string, bool) {
		line = strings.TrimLeft(line, " \t")
		if m, ok := readMark(line); ok && m.state == Pending {
			waiting = append(waiting, Waiting{m.name, m.at})
		}
		guarded = guarded || isGuard(line)
		return "", false
	})
	return waiting, guarded
}

// Finish returns the crontab once the schedules of its pending lines tick, without the guard.
func Finish(text string) string {
	return eachLine(text, func(_ int, line string) (string, bool) {
		trimmed := strings.TrimLeft(line, " \t")
		if m, ok := readMark(trimmed); ok && m.state == Pending {
			return takenMark + m.name + ": " + m.line, true
		}
		return line, !isGuard(trimmed)
	})
}
