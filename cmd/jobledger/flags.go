package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/xrash/smetrics"
)

// whole is a flag for a whole number between lo and hi. cli's own takes "010" for eight and knows no range.
type whole struct {
	*cli.IntFlag
	lo, hi int
}

// wholeFlag makes a flag whose value c.Int(name) gives, and that is refused outside lo…hi. With unset,
// the help shows that in place of a default.
func wholeFlag(name, usage string, value, lo, hi int, unset string, aliases ...string) cli.Flag {
	return &whole{&cli.IntFlag{Name: name, Aliases: aliases, Usage: usage, Value: value, DefaultText: unset}, lo, hi}
}

// Apply makes the flag known to the parser.
func (f *whole) Apply(set *flag.FlagSet) error {
	number := &wholeNumber{f.Value, f.lo, f.hi}
	for _, name := range f.Names() {
		set.Var(number, name, f.Usage)
	}
	return nil
}

// refuse says what the flag takes instead of value.
func (f *whole) refuse(value string) error {
	if f.hi == math.MaxInt {
		return usagef("--%s: %q is not a whole number of at least %d", f.Name, value, f.lo)
	}
	return usagef("--%s: %q is not a whole number from %d to %d", f.Name, value, f.lo, f.hi)
}

// wholeNumber is the value of a whole while the line is parsed.
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

// durationFlag makes a flag for a duration between lo and hi (hi 0 for no upper limit), zero only where
// allowZero says so. Empty value means that the flag has no default. Read it with durationOf.
func durationFlag(name, usage, value string, lo, hi time.Duration, allowZero bool, aliases ...string) cli.Flag {
	return &cli.StringFlag{
		Name: name, Aliases: aliases, Usage: usage, Value: value, DefaultText: value,
		Action: func(_ *cli.Context, s string) error {
			_, err := parseDuration(name, s, lo, hi, allowZero)
			return err
		},
	}
}

// durationOf reads a durationFlag; ok is false when it was not given and has no default.
func durationOf(c *cli.Context, name string) (d time.Duration, ok bool) {
	s := c.String(name)
	if s == "" {
		return 0, false
	}
	d, err := readDuration(s)
	return d, err == nil // the flag's action has checked it
}

// listFlag makes a flag that may be repeated; each value is taken as it is, with its commas and spaces.
// Read it with c.StringSlice(name).
func listFlag(name, usage string, aliases ...string) *cli.StringSliceFlag {
	return &cli.StringSliceFlag{Name: name, Aliases: aliases, Usage: usage, KeepSpace: true}
}

// whenOf reads a flag that holds a time or a place in the ledger; ok is false when it was not given.
func (p *program) whenOf(c *cli.Context, name string) (w when, ok bool, err error) {
	if !c.IsSet(name) {
		return when{}, false, nil
	}
	w, err = parseWhen(name, c.String(name), p.now())
	return w, err == nil, err
}

// checkOrder refuses a --from that is later than --to: nothing would match, and that says nothing. Of a time and a place
// in the ledger it cannot be seen.
func (p *program) checkOrder(c *cli.Context) error {
	from, began, err := p.whenOf(c, "from")
	if err != nil {
		return err
	}
	to, ended, err := p.whenOf(c, "to")
	if err == nil && began && ended && from.ByPos == to.ByPos && (from.Pos > to.Pos || from.Time.After(to.Time)) {
		err = usagef("--from is later than --to")
	}
	return err
}

// missingFlag says which required flag of v stands neither on the line nor in the environment.
func (v verb) missingFlag(l line) error {
	for _, f := range v.flags {
		required, ok := f.(cli.RequiredFlag)
		if !ok || !required.IsRequired() || l.given[f.Names()[0]] || fromEnvironment(f) {
			continue
		}
		return withHint(usagef("missing flag %s", flagLabel(f)), "%s", seeHelp(v.name))
	}
	return nil
}

func fromEnvironment(f cli.Flag) bool {
	d, ok := f.(cli.DocGenerationFlag)
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

// What the standard flag package, with which cli parses, and cli itself say about values they do not like.
var (
	badValue    = regexp.MustCompile(`(?s)^invalid (?:boolean )?value (".*") for (?:flag )?-([^\s:]+): (.*)$`)
	badVariable = regexp.MustCompile(`(?s)^could not parse (".*") as \w+ value from environment variable "(.*)" for flag (.*?): (.*)$`)
)

// flagError puts an error of cli's parser into the words of this program.
func flagError(v verb, err error) error {
	if _, ok := errors.AsType[*exitError](err); ok {
		return err
	}
	var value, shown, name, why string
	if m := badValue.FindStringSubmatch(err.Error()); m != nil {
		value, shown, name, why = m[1], "--"+m[2], m[2], m[3]
	} else if m := badVariable.FindStringSubmatch(err.Error()); m != nil {
		value, shown, name, why = m[1], m[2], m[3], m[4]
	} else {
		return withHint(usagef("%w", err), "%s", seeHelp(v.name))
	}
	if unquoted, err := strconv.Unquote(value); err == nil {
		value = unquoted
	}
	switch f, _ := lookUp(name, v.flags, globalFlags("")); f := f.(type) {
	case *whole:
		err = f.refuse(value)
	case *cli.BoolFlag:
		err = usagef("%s: %q is neither true nor false", shown, value)
	default:
		err = usagef("%s: %q: %s", shown, value, why)
	}
	return withHint(err, "%s", seeHelp(v.name))
}

// flagLabel is a flag as a person would type it: "--queue (-q)".
func flagLabel(f cli.Flag) string {
	label := "--" + f.Names()[0]
	for _, alias := range f.Names()[1:] {
		label += fmt.Sprintf(" (-%s)", alias)
	}
	return label
}

// nearest is the candidate that word is most probably a slip for, or "" if none is near.
func nearest(word string, candidates []string) string {
	const near = 0.85 // "enqeue" 0.96, "stats" for "status" 0.97, "foo" for "for" 0.82
	best, found := near, ""
	for _, c := range candidates {
		if score := smetrics.JaroWinkler(word, c, 0.7, 4); score >= best {
			best, found = score, c
		}
	}
	return found
}
