package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// Groups of commands, in the order of the help.
const (
	groupSetUp      = "set up"
	groupProduce    = "produce"
	groupWork       = "work"
	groupPrimitives = "primitives"
	groupOperate    = "operate"
	groupSee        = "see"
	groupAudit      = "audit"
	groupLedger     = "ledger"
)

var groups = []string{
	groupSetUp, groupProduce, groupWork, groupPrimitives, groupOperate, groupSee, groupAudit, groupLedger,
}

// anyNumber as a verb's maxArgs permits as many arguments as the user likes.
const anyNumber = -1

// verb is one command: what cli needs to parse it, and what the help says beyond that.
type verb struct {
	name  string
	group string // one of groups; empty hides the command from help and completion
	usage string // what it does, in one line, lower case, no full stop
	about string // more about it, a paragraph or two; may be empty

	args    string // the arguments as the usage line shows them, as in "JOB…"; empty for none
	minArgs int
	maxArgs int    // anyNumber for no limit
	rest    string // what must stand after "--", as in "CMD ARGS…"; empty for commands that take none

	flags    []cli.Flag                 // long name first, one-letter aliases; Required works, Value is the default
	examples []example                  // at least one
	exits    []int                      // codes beyond 0, 1 and 2, which every command has
	complete func(flag string) []string // words for TAB: values of the flag named, arguments for ""; may be nil

	run func(c *cli.Context) error // c.Args() are the arguments, without what stands after "--"
}

// example is a line for the shell, and what that does.
type example [2]string

// synopsis is the usage line of v.
func (v verb) synopsis() string {
	parts := []string{programName, v.name}
	if len(v.flags) > 0 {
		parts = append(parts, "[flags]")
	}
	if v.args != "" {
		parts = append(parts, v.args)
	}
	if v.rest != "" {
		parts = append(parts, "-- "+v.rest)
	}
	return strings.Join(parts, " ")
}

// exitCodes are all codes with which v may end, in the order of exitMeanings.
func (v verb) exitCodes() []int {
	codes := append([]int{exitOK, exitUnexpected, exitUsage}, v.exits...)
	slices.Sort(codes)
	return slices.Compact(codes)
}

// command is v as cli knows it. Its help is ours, so that usage never lands on stdout after an error.
func (v verb) command() *cli.Command {
	return &cli.Command{
		Name:            v.name,
		Usage:           v.usage,
		ArgsUsage:       v.args,
		Category:        v.group,
		Hidden:          v.group == "",
		HideHelp:        true,
		HideHelpCommand: true,
		Flags:           v.flags,
		Action:          v.run,
		OnUsageError:    func(_ *cli.Context, err error, _ bool) error { return flagError(v, err) },
	}
}

// checkArgs says what is wrong with the number of arguments or with the words after "--".
func (v verb) checkArgs(l line) error {
	own := max(v.minArgs, v.maxArgs)
	switch n := len(l.args); {
	case v.rest != "" && !l.cut && n > own:
		return withHint(usagef("the worker's command must stand after --"),
			"%s … -- %s", programName+" "+v.name, strings.Join(l.args[own:], " "))
	case n < v.minArgs:
		return withHint(usagef("missing %s", v.args), "%s", seeHelp(v.name))
	case v.maxArgs != anyNumber && n > v.maxArgs:
		return withHint(usagef("unexpected argument %q", l.args[v.maxArgs]), "%s", seeHelp(v.name))
	case v.rest != "" && len(l.rest) == 0:
		return withHint(usagef("missing -- %s", v.rest), "%s", seeHelp(v.name))
	}
	return nil
}

// seeHelp is the hint of last resort.
func seeHelp(verb string) string {
	if verb == "" {
		return "see '" + programName + " --help'"
	}
	return "see '" + programName + " " + verb + " --help'"
}
