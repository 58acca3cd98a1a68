package cli

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"sync"
	"time"

	"jobledger/cmd/jobledger/internal/when"

	"jobledger/projection/query"

	urfave "github.com/urfave/cli/v2"
)

// whole is a flag for a whole number from lo to hi. The parser's own reads "010" as eight and has no range.
type whole struct {
	*urfave.IntFlag
	lo, hi int
}

// WholeFlag returns a flag for a whole number from lo to hi; read it with c.Int(name). If unset is not empty,
// the help shows it as the default.
func WholeFlag(name, usage string, value, lo, hi int, unset string, aliases ...string) Flag {
	return &whole{&urfave.IntFlag{Name: name, Aliases: aliases, Usage: usage, Value: value, DefaultText: unset},
		lo, hi}
}

// Apply registers the flag with the parser.
func (f *whole) Apply(set *flag.FlagSet) error {
	number := &wholeNumber{f.Value, f.lo, f.hi}
	for _, name := range f.Names() {
		set.Var(number, name, f.Usage)
	}
	return nil
}

// refuse is the error for value, with the range.
func (f *whole) refuse(value string) error {
	if f.hi == math.MaxInt {
		return Usagef("--%s: %q is not a whole number of at least %d", f.Name, value, f.lo)
	}
	return Usagef("--%s: %q is not a whole number from %d to %d", f.Name, value, f.lo, f.hi)
}

// wholeNumber is the value of a whole flag during parsing.
type wholeNumber struct{ n, lo, hi int }

func (w *wholeNumber) String() string { return strconv.Itoa(w.n) }

func (w *wholeNumber) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < w.lo || n > w.hi {
		return strconv.ErrRange // refuse finds the words
	}
	w.n = n
	return nil
}

// DurationFlag returns a flag for a duration from lo to hi (hi 0: no upper limit); zero is accepted only if
// allowZero. An empty value means that there is no default. Read it with [DurationValue].
func DurationFlag(name, usage, value string, lo, hi time.Duration, allowZero bool, aliases ...string) Flag {
	return &StringFlag{
		Name: name, Aliases: aliases, Usage: usage, Value: value, DefaultText: value,
		Action: func(_ *Context, s string) error {
			_, err := ParseDuration(name, s, lo, hi, allowZero)
			return err
		},
	}
}

// DurationValue reads a [DurationFlag]; ok is false if it was not given and has no default.
func DurationValue(c *Context, name string) (d time.Duration, ok bool) {
	s := c.String(name)
	if s == "" {
		return 0, false
	}
	d, err := when.ParseDuration(s)
	return d, err == nil // the flag's action has checked it
}

// ListFlag returns a flag that may be repeated. Each value is taken literally, with its commas and spaces.
// Read it with c.StringSlice(name).
func ListFlag(name, usage string, aliases ...string) *StringSliceFlag {
	return &StringSliceFlag{Name: name, Aliases: aliases, Usage: usage, KeepSpace: true}
}

// WhenFlag reads a flag whose value is a time or a position in the ledger; ok is false if it was not given.
func (p *Program) WhenFlag(c *Context, name string) (w when.When, ok bool, err error) {
	if !c.IsSet(name) {
		return when.When{}, false, nil
	}
	h, err := p.heard(name, c.String(name), false)
	return h.When, err == nil, err
}

// FromTo reads --from and --to; one that was not given is nil. A --from later than --to, which would match
// nothing, is an error. A time and a position are not compared.
func (p *Program) FromTo(c *Context) (from, to *when.When, err error) {
	if w, given, err := p.WhenFlag(c, "from"); err != nil {
		return nil, nil, err
	} else if given {
		from = &w
	}
	if w, given, err := p.WhenFlag(c, "to"); err != nil {
		return nil, nil, err
	} else if given {
		to = &w
	}
	return from, to, query.Window{From: from, To: to}.Check()
}

// missingFlag is the error for a required flag that is neither on the line nor in the environment.
func (v Verb) missingFlag(l line) error {
	for _, f := range v.Flags {
		required, ok := f.(urfave.RequiredFlag)
		if !ok || !required.IsRequired() || l.given[f.Names()[0]] || fromEnvironment(f) {
			continue
		}
		return WithHint(Usagef("missing flag %s", flagLabel(f)), "%s", SeeHelp(v.Name))
	}
	return nil
}

func fromEnvironment(f Flag) bool {
	d, ok := f.(urfave.DocGenerationFlag)
	if !ok {
		return false
	}
	for _, name := range d.GetEnvVars() {
		if os.Getenv(name) != "" {
			return true
		}
	}
	return false
}

// Messages of the standard flag package and of the parser about values that they refuse.
var (
	badValue = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?s)^invalid (?:boolean )?value (".*") for (?:flag )?-([^\s:]+): (.*)$`)
	})
	badVariable = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(
			`(?s)^could not parse (".*") as \w+ value from environment variable "(.*)" for flag (.*?): (.*)$`)
	})
)

// flagError rewrites an error of the parser in the words of this program.
func flagError(v Verb, err error) error {
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	var value, shown, name, why string
	if m := badValue().FindStringSubmatch(err.Error()); m != nil {
		value, shown, name, why = m[1], "--"+m[2], m[2], m[3]
	} else if m := badVariable().FindStringSubmatch(err.Error()); m != nil {
		value, shown, name, why = m[1], m[2], m[3], m[4]
	} else {
		return WithHint(Usagef("%w", err), "%s", SeeHelp(v.Name))
	}
	if unquoted, err := strconv.Unquote(value); err == nil {
		value = unquoted
	}
	switch f, _ := lookUp(name, v.Flags, GlobalFlags("")); f := f.(type) {
	case *whole:
		err = f.refuse(value)
	case *BoolFlag: // of a variable; normalize has read the flags
		err = Usagef("%s: %q is neither true nor false", shown, value)
	default:
		err = Usagef("%s: %q: %s", shown, value, why)
	}
	return WithHint(err, "%s", SeeHelp(v.Name))
}

// flagLabel returns a flag as people type it: "--queue (-q)".
func flagLabel(f Flag) string {
	label := "--" + f.Names()[0]
	for _, alias := range f.Names()[1:] {
		label += fmt.Sprintf(" (-%s)", alias)
	}
	return label
}

// The verbs declare their flags and read their values by these names, so only this package knows the parser.
type (
	// Context is a parsed command line: the values of its flags and its arguments.
	Context = urfave.Context
	// Flag is one of a verb's flags.
	Flag = urfave.Flag
	// BoolFlag is a flag without a value.
	BoolFlag = urfave.BoolFlag
	// StringFlag is a flag whose value is not interpreted.
	StringFlag = urfave.StringFlag
	// StringSliceFlag is a flag that may be repeated; [ListFlag] makes one.
	StringSliceFlag = urfave.StringSliceFlag
)
