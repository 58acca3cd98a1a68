package cli

import (
	"slices"
	"strings"

	urfave "github.com/urfave/cli/v2"
)

// Groups of commands, in the order of the help.
const (
	GroupSetUp      = "set up"
	GroupProduce    = "produce"
	GroupWork       = "work"
	GroupPrimitives = "primitives"
	GroupOperate    = "operate"
	GroupSee        = "see"
	GroupAudit      = "audit"
	GroupLedger     = "ledger"
)

// Groups lists the groups of commands in the order of the help.
var Groups = []string{
	GroupSetUp, GroupProduce, GroupWork, GroupPrimitives, GroupOperate, GroupSee, GroupAudit, GroupLedger,
}

// AnyNumber as MaxArgs of a [Verb] means no limit.
const AnyNumber = -1

// Verb is one command: its flags and arguments, its help, and the function that runs it.
type Verb struct {
	Name  string
	Group string // one of groups; empty hides the command from help and completion
	Usage string // what it does, in one line, lower case, no full stop
	About string // more about it, a paragraph or two; may be empty

	Args    string // the arguments as the usage line shows them, as in "JOB…"; empty for none
	MinArgs int
	MaxArgs int    // anyNumber for no limit
	Rest    string // what must stand after "--", as in "CMD ARGS…"; empty for commands that take none

	// long name first, one-letter aliases; Required works, Value is the default
	Flags []Flag
	// other names of flags, which work as well, and their names in the help; may be nil
	Renamed    map[string]string
	RestBegins bool   // the first other word begins it too, as with env and sudo
	NoRest     string // the flag with which nothing stands after "--"; may be empty
	// whether the words after "--" are Rest, for a verb that may do without; if not, they are arguments. nil:
	// Rest must be there
	RestIf func(args, rest []string, given map[string]bool) bool
	// flags that may take the place of the arguments, and the hint where neither is given; may be empty
	InPlace     []string
	InPlaceHint string

	Here          bool      // it makes a ledger: without --db that of this folder, wherever there is another one
	QueuePatterns bool      // --queue takes more than names, and Run checks them
	Examples      []Example // at least one
	Exits         []int     // codes beyond 0, 1 and 2, which every command has
	// words for TAB: the values of each flag, and for "" of the argument; may be nil
	Complete map[string][]string
	// actions, the first argument, after which TAB gives the names of schedules; may be nil
	NamedActions []string

	Run func(c *Context) error // c.Args() are the arguments, without the words after "--"
}

// Example is a line for the shell, and what that does.
type Example [2]string

// synopsis returns the usage line of v.
func (v Verb) synopsis() string {
	parts := []string{ProgramName, v.Name}
	if len(v.Flags) > 0 {
		parts = append(parts, "[flags]")
	}
	if v.Args != "" {
		parts = append(parts, v.Args)
	}
	switch {
	case v.RestIf != nil:
		parts = append(parts, "[-- "+v.Rest+"]")
	case v.Rest != "":
		parts = append(parts, "-- "+v.Rest)
	}
	return strings.Join(parts, " ")
}

// exitCodes returns all exit codes of v in ascending order.
func (v Verb) exitCodes() []int {
	codes := append([]int{ExitOK, ExitUnexpected, ExitUsage}, v.Exits...)
	slices.Sort(codes)
	return slices.Compact(codes)
}

// command returns v for the parser, without the parser's help, which would print usage on stdout after an
// error.
func (v Verb) command() *urfave.Command {
	return &urfave.Command{
		Name:            v.Name,
		Usage:           v.Usage,
		ArgsUsage:       v.Args,
		Category:        v.Group,
		Hidden:          v.Group == "",
		HideHelp:        true,
		HideHelpCommand: true,
		Flags:           v.Flags,
		Action:          v.Run,
		OnUsageError:    func(_ *Context, err error, _ bool) error { return flagError(v, err) },
	}
}

// checkArgs checks the number of arguments and the words after "--".
func (v Verb) checkArgs(l line) error {
	own := max(v.MinArgs, v.MaxArgs)
	switch n := len(l.args); {
	case v.needsRest() && !l.cut && n > own:
		return WithHint(Usagef("the worker's command must stand after --"),
			"%s … -- %s", ProgramName+" "+v.Name, strings.Join(l.args[own:], " "))
	case n < v.MinArgs && slices.ContainsFunc(v.InPlace, func(name string) bool { return l.given[name] }):
		return nil // the verb says whether these flags are enough
	case n < v.MinArgs && v.InPlaceHint != "":
		return WithHint(Usagef("missing %s", v.Args), "%s", v.InPlaceHint)
	case n < v.MinArgs:
		return WithHint(Usagef("missing %s", v.Args), "%s", SeeHelp(v.Name))
	case v.MaxArgs != AnyNumber && n > v.MaxArgs:
		return WithHint(Usagef("unexpected argument %q", l.args[v.MaxArgs]), "%s", SeeHelp(v.Name))
	case v.NoRest != "" && l.given[v.NoRest] && len(l.rest) > 0:
		return WithHint(Usagef("--%s takes no command: each job carries its own", v.NoRest), "%s", SeeHelp(v.Name))
	case v.NoRest != "" && l.given[v.NoRest]:
	case v.needsRest() && len(l.rest) == 0:
		return WithHint(Usagef("missing -- %s", v.Rest), "%s", SeeHelp(v.Name))
	}
	return nil
}

func (v Verb) needsRest() bool { return v.Rest != "" && v.RestIf == nil }

// SeeHelp is the default hint; verb is empty for the whole program.
func SeeHelp(verb string) string {
	if verb == "" {
		return "see '" + ProgramName + " --help'"
	}
	return "see '" + ProgramName + " " + verb + " --help'"
}

func (v Verb) name() string { return v.Name }
