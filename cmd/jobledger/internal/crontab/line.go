package crontab

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"jobledger/commands/cron"
)

// readEntry reads a line that runs a command, without blanks at its beginning.
func readEntry(text string, system bool) (*Line, error) {
	l := &Line{}
	rest := strings.TrimPrefix(text, "-") // cron writes no line into its log
	fields := 5
	if strings.HasPrefix(rest, "@") {
		fields = 1
	}
	var when []string
	for range fields {
		field, after := cutBlank(rest)
		if field == "" {
			return nil, errors.New("five fields and a command are expected, or NAME=VALUE")
		}
		when, rest = append(when, field), after
	}
	l.When = strings.Join(when, " ")
	if !l.Reboot() {
		if err := checkWhen(l.When); err != nil {
			return nil, err
		}
	}
	if strings.HasPrefix(rest, "*") {
		return nil, errors.New("a command that begins with *: five fields come before it, not six")
	}
	if system {
		if l.User, rest = cutBlank(rest); l.User == "" || rest == "" || strings.HasPrefix(rest, "*") {
			return nil, errors.New("a user and a command are expected after the time")
		}
	}
	if strings.HasPrefix(rest, "-") {
		option, after := cutBlank(rest)
		if l.OnError = option == "-n"; !l.OnError || strings.HasPrefix(after, "-") {
			return nil, fmt.Errorf("cron takes %.20q for an option of its own, and has only -n", option)
		}
		rest = after
	}
	if rest == "" {
		return nil, errors.New("a command is missing")
	}
	l.Text = rest
	l.Command, l.Stdin = splitPercent(rest)
	if l.Command == "" {
		return nil, errors.New("a command is missing before %")
	}
	return l, nil
}

// cutBlank returns text up to its first space or tab, and what follows the blanks there.
func cutBlank(text string) (field, rest string) {
	i := strings.IndexAny(text, " \t")
	if i < 0 {
		return text, ""
	}
	return text[:i], strings.TrimLeft(text[i:], " \t")
}

// checkWhen returns what is wrong with the time of a line.
func checkWhen(when string) error {
	if strings.Contains(when, "~") {
		return errors.New("~ lets cron draw a time; write a number, and RANDOM_DELAY=MINUTES in a line before it")
	}
	_, err := cron.Parse(when, nil)
	if wrong, ok := errors.AsType[*cron.SyntaxError](err); ok {
		if strings.HasPrefix(when, "@") {
			wrong.Want = "@reboot, @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually"
		}
		return fmt.Errorf("%q is not allowed; allowed: %s", when, wrong.Want)
	}
	return err
}

// splitPercent returns the command and its standard input. The first % ends the command, each later one is a
// newline; \% is a %. The input ends with a newline.
func splitPercent(text string) (command, stdin string) {
	var b strings.Builder
	escaped := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case escaped && c != '%':
			b.WriteByte('\\')
			b.WriteByte(c)
			escaped = false
		case escaped:
			b.WriteByte('%')
			escaped = false
		case c == '\\':
			escaped = true
		case c == '%':
			return b.String(), inputOf(text[i+1:])
		default:
			b.WriteByte(c)
		}
	}
	if escaped {
		b.WriteByte('\\')
	}
	return b.String(), ""
}

// inputOf is the standard input that the text after the first % is. In it a \ counts for the next character
// even if a \ stood before it, other than in a command: so cronie does it.
func inputOf(text string) string {
	var b strings.Builder
	escaped := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		if escaped {
			if c != '%' {
				b.WriteByte('\\')
			}
		} else if c == '%' {
			c = '\n'
		}
		if escaped = c == '\\'; !escaped {
			b.WriteByte(c)
		}
	}
	if escaped {
		b.WriteByte('\\')
	}
	if s := b.String(); s != "" && !strings.HasSuffix(s, "\n") {
		b.WriteByte('\n')
	}
	return b.String()
}

// maxDelay is the largest RANDOM_DELAY, in minutes.
const maxDelay = 24 * 60

// Jitter returns RANDOM_DELAY: the line runs up to so much later.
func (l Line) Jitter() (time.Duration, error) {
	text, ok := l.Setting("RANDOM_DELAY")
	if !ok {
		return 0, nil
	}
	minutes, err := strconv.ParseUint(text, 10, 16)
	if err != nil || minutes > maxDelay {
		return 0, &LineError{l.Number, fmt.Errorf("RANDOM_DELAY %.40q is not allowed; allowed: minutes, 0 to %d",
			text, maxDelay)}
	}
	return time.Duration(minutes) * time.Minute, nil
}

// Zone returns CRON_TZ, the time zone of the line; "": that of the machine.
func (l Line) Zone() (string, error) {
	name, _ := l.Setting("CRON_TZ")
	if _, err := cron.Zone(name); err != nil {
		return "", &LineError{l.Number, fmt.Errorf("CRON_TZ %.80q is not allowed; allowed: an IANA name such as "+
			"Europe/Berlin", name)}
	}
	return name, nil
}
