package cli

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/when"
	"jobledger/commands"
)

// line is a command line in the order that the parser can read. The parser ends the flags at the first
// argument, drops "--", accepts global flags only before the command, and takes two names of one flag for a
// conflict. So every flag here has its canonical name, and its value in the same word.
type line struct {
	globals []string // as in "--db=jobs.db"
	verb    string   // empty when none was given
	flags   []string
	args    []string
	rest    []string // the words after the first "--" of a verb that wants it, as it was typed
	cut     bool     // there was a "--"
	help    bool     // --help or -h was among the flags
	version bool     // --version in front of any command
	given   map[string]bool
}

// words returns the line for the parser, with the program's name first. Arguments follow a "--", because they
// may begin with "-".
func (l line) words() []string {
	words := append([]string{ProgramName}, l.globals...)
	words = append(words, l.verb)
	words = append(words, l.flags...)
	words = append(words, "--")
	return append(words, l.args...)
}

// normalize reads the words after the program's name. The line is cut at its first "--". Before that, flags,
// global flags and arguments may come in any order, the command's own flags anywhere after its name. A flag
// that takes a value takes the next word, whatever that is: "--run-at -2h", "--priority -5", "--detail
// --json". It also accepts --flag=value, --bool, --bool=false, and like getopt -q mail, -qmail, -q=mail, -xq
// mail (x without a value). A lone "-" is an argument.
func normalize(typed []string, globals []Flag, verbs []Verb) (line, error) {
	l := line{given: map[string]bool{}}
	if i := slices.Index(typed, "--"); i >= 0 {
		typed, l.rest, l.cut = typed[:i], typed[i+1:], true
	}
	var v Verb
	for len(typed) > 0 {
		word := typed[0]
		typed = typed[1:]
		if word == "-" || !strings.HasPrefix(word, "-") {
			if l.verb != "" && v.RestBegins {
				if l.cut {
					l.rest = append([]string{"--"}, l.rest...)
				}
				l.rest, l.cut = slices.Concat([]string{word}, typed, l.rest), true
				break
			}
			if l.verb != "" {
				l.args = append(l.args, word)
				continue
			}
			i := slices.IndexFunc(verbs, func(v Verb) bool { return v.Name == word })
			if i < 0 {
				return l, unknownCommand(word, verbs)
			}
			v, l.verb = verbs[i], word
			continue
		}
		var err error
		if typed, err = l.flag(word, typed, v, globals); err != nil {
			return l, err
		}
	}
	if l.verb != "" && l.cut && (v.Rest == "" || v.RestIf != nil && !v.RestIf(l.args, l.rest, l.given)) {
		l.args, l.rest = append(l.args, l.rest...), nil
	}
	return l, nil
}

// flag reads one word of flags and returns the words after it that it did not use.
func (l *line) flag(word string, after []string, v Verb, globals []Flag) ([]string, error) {
	if name, long := strings.CutPrefix(word, "--"); long {
		name, value, hasValue := strings.Cut(name, "=")
		last := name == "last" && !hasValue && (len(after) == 0 || !isNumber(after[0]))
		if current, old := v.Renamed[name]; old {
			name, word = current, "--"+current
		}
		switch f, global := lookUp(name, v.Flags, globals); {
		case f != nil && last && takesValue(f):
			return after, l.addLast(f, v)
		case f != nil && len(name) > 1:
			return l.add(f, global, word, value, hasValue, after)
		case name == "help":
			l.help = true
			return after, nil
		case name == "version" && l.verb == "":
			l.version = true
			return after, nil
		}
		return nil, l.unknownFlag(word, v, globals)
	}

	name, _, _ := strings.Cut(word[1:], "=")
	if f, _ := lookUp(name, v.Flags, globals); len(name) > 1 && (f != nil || name == "help") {
		// Silently reading -queue as "-q ueue" would put jobs into a queue without workers.
		return nil, WithHint(Usagef("%s: a long flag begins with two dashes", word), "did you mean -%s?", word)
	}
	for letters := word[1:]; letters != ""; {
		name, letters = letters[:1], letters[1:]
		f, global := lookUp(name, v.Flags, globals)
		switch {
		case f == nil && name == "h":
			l.help = true
		case f == nil:
			return nil, l.unknownFlag(word, v, globals)
		case takesValue(f):
			value, equals := strings.CutPrefix(letters, "=")
			return l.add(f, global, "-"+name, value, equals || value != "", after)
		case strings.HasPrefix(letters, "="):
			return l.add(f, global, "-"+name, letters[1:], true, after)
		default:
			l.put(f, global, "")
		}
	}
	return after, nil
}

// isNumber reports whether word is a whole number.
func isNumber(word string) bool { return word != "" && strings.Trim(word, "0123456789") == "" }

// addLast records --last without a number: it means the newest job, as it does where a JOB is named.
func (l *line) addLast(f Flag, v Verb) error {
	value := "1"
	if job, _ := lookUp("job", v.Flags, nil); job != nil {
		f, value = job, "last"
	}
	if l.given[f.Names()[0]] {
		return Usagef("--last without a number and --%s cannot be combined", f.Names()[0])
	}
	l.put(f, false, "="+value)
	return nil
}

// add records one flag with its value, which is the next word unless it came with the flag. A second value
// for a flag that takes one is an error: dropping one of two queues silently would answer another question
// than the one asked.
func (l *line) add(f Flag, global bool, word, value string, hasValue bool, after []string) ([]string, error) {
	if hasValue && !takesValue(f) {
		if _, err := strconv.ParseBool(value); err != nil {
			return nil, valueOfSwitch(word, value)
		}
	}
	if takesValue(f) && !takesMany(f) && l.given[f.Names()[0]] {
		return nil, Usagef("flag --%s is given twice, but takes one value", f.Names()[0])
	}
	switch {
	case hasValue:
		l.put(f, global, "="+value)
	case !takesValue(f):
		l.put(f, global, "")
	case len(after) > 0:
		l.put(f, global, "="+after[0])
		after = after[1:]
	default:
		err := Usagef("flag %s needs a value", word)
		if l.cut {
			return nil, WithHint(err, "to give -- itself as the value, write --%s=--", f.Names()[0])
		}
		return nil, WithHint(err, "%s", SeeHelp(l.verb))
	}
	return after, nil
}

// valueOfSwitch is the error for a flag that takes no value, typed as word=value.
func valueOfSwitch(word, value string) error {
	word, _, _ = strings.Cut(word, "=")
	err := Usagef("%s takes no value, so it cannot be %q", word, value)
	if _, parseErr := when.ParseDuration(value); parseErr == nil && word == "--watch" {
		return WithHint(err, "write %s %s, without =", word, value)
	}
	return WithHint(err, "%s alone switches it on; %s=false means that it is not given", word, word)
}

// wantsJSON reports whether the line, or else variable, the value of JOBLEDGER_JSON, asks for JSON.
func (l *line) wantsJSON(variable string) bool {
	given, wanted := l.givenGlobals()["json"], false
	for _, word := range l.globals {
		if value, ok := strings.CutPrefix(word, "--json"); ok {
			wanted, _ = strconv.ParseBool(cmp.Or(strings.TrimPrefix(value, "="), "true"))
		}
	}
	if !given {
		wanted, _ = strconv.ParseBool(variable)
	}
	return wanted
}

// wordsBefore returns the words before the first "--".
func wordsBefore(typed []string) []string {
	if i := slices.Index(typed, "--"); i >= 0 {
		return typed[:i]
	}
	return typed
}

// givenGlobals returns the global flags of the line. A verb's own flag may have the name of one.
func (l *line) givenGlobals() map[string]bool {
	given := make(map[string]bool)
	for _, word := range l.globals {
		name, _, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		given[name] = true
	}
	return given
}

func (l *line) put(f Flag, global bool, value string) {
	name := f.Names()[0]
	l.given[name] = true
	if global {
		l.globals = append(l.globals, "--"+name+value)
		return
	}
	l.flags = append(l.flags, "--"+name+value)
}

// unknownFlag is the error for word, with the most similar flag as a hint.
func (l *line) unknownFlag(word string, v Verb, globals []Flag) error {
	shown, _, _ := strings.Cut(word, "=")
	err := Usagef("unknown flag %s", shown)
	if l.verb != "" {
		err = Usagef("unknown flag %s for %s", shown, l.verb)
	}
	var names []string
	for _, f := range slices.Concat(v.Flags, globals) {
		for _, name := range f.Names() {
			if len(name) > 1 {
				names = append(names, name)
			}
		}
	}
	switch near := fault.Nearest(strings.TrimLeft(shown, "-"), names); {
	case v.needsRest() && len(l.args) > 0: // work -q mail sh -c true
		return WithHint(err, "the command follows --, as in 'jobledger %s … -- %s %s …'", l.verb, l.args[0], shown)
	case near != "":
		return WithHint(err, "did you mean --%s?", near)
	case l.verb == "":
		return WithHint(err, "the flags of a command follow its name; %s", SeeHelp(""))
	case !strings.HasPrefix(word, "--"):
		return WithHint(err, "put -- in front of an argument that begins with a dash; %s", SeeHelp(l.verb))
	}
	return WithHint(err, "%s", SeeHelp(l.verb))
}

// lookUp finds a flag by any of its names. The command's own flags win over the global ones.
func lookUp(name string, own, globals []Flag) (f Flag, global bool) {
	named := func(f Flag) bool { return slices.Contains(f.Names(), name) }
	if i := slices.IndexFunc(own, named); i >= 0 {
		return own[i], false
	}
	if i := slices.IndexFunc(globals, named); i >= 0 {
		return globals[i], true
	}
	return nil, false
}

// checkValues refuses values that are wrong for every command with a flag of that name. An empty value is
// usually a shell variable that is not set; used as a filter it would match everything. patterns says that
// --queue takes more than names.
func (l *line) checkValues(patterns bool) error {
	for _, word := range l.flags {
		name, value, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		switch name {
		case "queue", "key", "worker", "version", "actor", "jsonl", "lines":
			if value == "" {
				return Usagef("--%s is empty", name)
			}
		}
		if name == "queue" && !patterns {
			if err := commands.CheckQueue(value); err != nil {
				return err
			}
		}
	}
	return nil
}

// takesMany reports whether f may be given more than once.
func takesMany(f Flag) bool {
	_, ok := f.(*StringSliceFlag)
	return ok
}

// takesValue reports whether f takes a value; all flags but the boolean ones do.
func takesValue(f Flag) bool {
	d, ok := f.(urfave.DocGenerationFlag)
	return !ok || d.TakesValue()
}
