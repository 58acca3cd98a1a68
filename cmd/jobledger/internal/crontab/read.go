package crontab

import (
	"errors"
	"fmt"
	"strings"
)

// State says who runs a line.
type State int

const (
	Active  State = iota // cron does
	Pending              // cron does not any more, its schedule perhaps not yet
	Taken                // its schedule does
)

// Line is a line of a crontab that runs a command.
type Line struct {
	Number  int
	State   State
	Name    string // of its schedule; "": it has none yet
	When    string // five fields, or a name such as @daily or @reboot
	User    string // in a system's crontab: as whom it runs
	Text    string // what follows these, as it stands in the crontab
	Command string // what the shell gets: Text up to the first %
	Stdin   string // its standard input: Text after that
	OnError bool   // -n: mail only where the command fails

	env []setting // those in force
}

type setting struct{ name, value string }

// Reboot reports whether the line runs when the machine starts, which no clock says.
func (l Line) Reboot() bool { return l.When == "@reboot" }

// Setting returns the value of a variable in the crontab, as it is where the line stands.
func (l Line) Setting(name string) (value string, ok bool) {
	for _, s := range l.env {
		if s.name == name {
			value, ok = s.value, true
		}
	}
	return value, ok
}

// Environment returns the variables that the crontab sets for the line. LOGNAME and USER are not among them:
// cron sets these two itself.
func (l Line) Environment() map[string]string {
	env := make(map[string]string, len(l.env))
	for _, s := range l.env {
		if s.name != "LOGNAME" && s.name != "USER" {
			env[s.name] = s.value
		}
	}
	return env
}

// LineError is what is wrong with a line.
type LineError struct {
	Number int
	Err    error
}

// Error begins with the number of the line.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Number, e.Err) }

// Unwrap returns what is wrong.
func (e *LineError) Unwrap() error { return e.Err }

// Read returns the lines that run a command; system says that they name a user. Its error joins a LineError
// for each line that cron, or package cron, would not take; then there are no lines.
func Read(text string, system bool) (lines []Line, err error) {
	var wrong []error
	var env []setting
	for number, rest := 1, text; rest != ""; number++ {
		line, after, ended := strings.Cut(rest, "\n")
		rest = after
		l, problem := readLine(strings.TrimLeft(line, " \t"), system, &env)
		switch {
		case problem == nil && l == nil:
			continue
		case problem == nil && !ended:
			problem = errors.New("cron ignores a last line that does not end: add a newline")
		}
		if problem != nil {
			wrong = append(wrong, &LineError{number, problem})
			continue
		}
		l.Number, l.env = number, env
		lines = append(lines, *l)
	}
	if wrong != nil {
		return nil, errors.Join(wrong...)
	}
	return lines, nil
}

// readLine returns the line that text is; nil if it runs nothing. A setting is added to env.
func readLine(text string, system bool, env *[]setting) (l *Line, err error) {
	if strings.Contains(text, "\x00") {
		return nil, errors.New("it has a NUL")
	}
	state, name := Active, ""
	if m, ok := readMark(text); ok {
		state, name, text = m.state, m.name, strings.TrimLeft(m.line, " \t")
	}
	if text == "" || text[0] == '#' || isGuard(text) {
		return nil, nil
	}
	if s, ok := readSetting(text); ok && state == Active {
		if s.name == "" {
			return nil, errors.New("a setting without a name")
		}
		*env = append((*env)[:len(*env):len(*env)], s) // lines before it keep theirs
		return nil, nil
	}
	l, err = readEntry(text, system)
	if err != nil {
		return nil, err
	}
	l.State, l.Name = state, name
	return l, nil
}

// The states in which readSetting is, in this order.
const (
	inName = iota
	afterName
	beforeValue
	inValue
	afterValue
)

// readSetting reads NAME = VALUE, each perhaps in quotes. Not ok: it is another line.
func readSetting(text string) (s setting, ok bool) {
	state, quote := inName, quoteOf(text)
	i := 0
	if quote != 0 {
		i = 1
	}
	var name, value strings.Builder
	for ; i < len(text); i++ {
		c := text[i]
		switch state {
		case inName:
			switch {
			case quote != 0 && c == quote, quote == 0 && space(c):
				state = afterName
			case c == '=' && quote != 0:
				return s, false
			case c == '=':
				state = beforeValue
			default:
				name.WriteByte(c)
			}
		case afterName:
			if c == '=' {
				state = beforeValue
			} else if !space(c) {
				return s, false
			}
		case beforeValue:
			if space(c) {
				continue
			}
			state = inValue
			if quote = quoteOf(text[i:]); quote == 0 {
				value.WriteByte(c)
			}
		case inValue:
			if quote != 0 && c == quote {
				state = afterValue
			} else {
				value.WriteByte(c)
			}
		case afterValue:
			if !space(c) {
				return s, false
			}
		}
	}
	switch {
	case state < beforeValue, state == inValue && quote != 0:
		return s, false
	case state == inValue:
		return setting{name.String(), strings.TrimRight(value.String(), blanks)}, true
	}
	return setting{name.String(), value.String()}, true
}

// blanks are what cron takes for a space in a setting.
const blanks = " \t\n\v\f\r"

func space(c byte) bool { return strings.IndexByte(blanks, c) >= 0 }

// quoteOf returns the quote with which text begins; 0 if it begins with none.
func quoteOf(text string) byte {
	if text != "" && (text[0] == '"' || text[0] == '\'') {
		return text[0]
	}
	return 0
}
