package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	urfave "github.com/urfave/cli/v2"
	"golang.org/x/term"

	"jobledger/cmd/jobledger/internal/buildinfo"
	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/ledger/failpoint"
)

const (
	// ProgramName begins every message.
	ProgramName = buildinfo.ProgramName
	// DefaultDB is the ledger where --db is not given, and [findDB] finds no other.
	DefaultDB    = "jobledger.db"
	programUsage = "a job queue that keeps a ledger of everything that ever happened to a job"
)

// Program holds the standard streams, the clock and the values of the global flags. Stdout is buffered: a
// verb that runs for long, or that reports something it has committed, calls [Program.Flush].
type Program struct {
	stdin     io.Reader
	Stdout    *bufio.Writer
	Stderr    io.Writer
	Now       func() time.Time // in the zone in which times are shown and read
	ClockSkew time.Duration    // how far now is ahead of this machine's clock
	Stays     bool             // the command goes on for long: it compares all of a server's schema

	// Names returns the names of [QueueNames] and the like in the ledger, with what they are, for TAB after
	// begun; may be nil.
	Names func(ctx context.Context, what, begun string) [][2]string

	Docs fs.FS // the documentation, docs/NAME.md; nil: none

	ReparseTimes func() // reads --delay and the like again, when a ledger shows that now is another; may be nil

	StdoutTerminal bool
	StderrTerminal bool
	Width          int // columns of the terminal on stdout; 0 when it is none: nothing is cut off

	// From the line and the environment, known when a verb runs.
	DB      string
	JSON    bool
	Actor   string
	Color   bool     // on stdout
	dbGiven bool     // --db stood on the line
	found   bool     // DB was found elsewhere than in this folder, which is not said yet
	Rest    []string // what stood after "--", for verbs that want it

	said map[string]string // by flag: how its time was understood, once that was shown

	Live     bool            // questions are about what is in the ledger, not about its archive
	Archived *archive.Reader // of the copy that questions are asked of, without its Store; nil: the ledger
	Opened   *ledger.Store   // the ledger of --db, where it is open already; may be nil
}

// NewProgram returns a program on this process's standard streams.
func NewProgram() *Program {
	p := &Program{
		stdin:          os.Stdin,
		Stdout:         bufio.NewWriterSize(os.Stdout, 64<<10),
		Stderr:         os.Stderr,
		Now:            failpoint.Now,
		StdoutTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		StderrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
	}
	if p.StdoutTerminal {
		p.Width = 80
		if width, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil && width > 0 {
			p.Width = width
		}
	}
	// Without this, Go lets a write into a closed pipe kill the process, and a worker must not die of its
	// reader. Notify, not Ignore: children would inherit the latter.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	// A timer makes the runtime open its poller now: it would die later, when it can open no more files.
	time.AfterFunc(time.Hour, func() {}).Stop()
	return p
}

// Run runs the one of verbs that typed names (the words after the program's name) and returns the exit code.
// An error has been printed on stderr by then.
func (p *Program) Run(ctx context.Context, typed []string, verbs []Verb) int {
	return p.finish(p.Dispatch(ctx, typed, verbs))
}

// finish flushes stdout, prints err and its hint, and returns the exit code.
func (p *Program) finish(err error) int {
	if flushErr := p.Flush(); err == nil {
		err = flushErr
	}
	code, message, hint := fault.Explain(err)
	if quiet, ok := errors.AsType[*fault.Error](err); code == ExitOK || ok && quiet.Quiet {
		return code
	}
	if ledger.IsServerAddress(p.DB) {
		hint = fault.ServerHint(err, hint)
	}
	p.printError(code, message, hint)
	return code
}

// PrintError prints err on stderr as one of several that a command met; it does not end the program. A nil
// err prints nothing.
func (p *Program) PrintError(err error) {
	if code, message, hint := fault.Explain(err); code != ExitOK {
		p.printError(code, message, hint)
	}
}

// errorJSON is an error as --json prints it on stderr, in one line.
type errorJSON struct {
	Code    string  `json:"code"` // the word of the exit code
	Message string  `json:"message"`
	Hint    *string `json:"hint"`
	Exit    int     `json:"exit"`
}

// printError prints an error: a message and its hint, or with --json an object.
func (p *Program) printError(code int, message, hint string) {
	if p.JSON {
		line, err := words.JSONLine(errorJSON{fault.WordOf(code), words.Shorten(message),
			words.TextOrNull(words.Shorten(hint)),
			code})
		if err == nil {
			_, _ = p.Stderr.Write(line) // there is no other place to report to
			return
		}
	}
	p.Message("%s", message)
	if hint != "" {
		fmt.Fprintf(p.Stderr, "hint: %s\n", words.EscapeLines(words.Shorten(hint)))
	}
}

// Dispatch finds the verb, checks its arguments and flags, and runs it.
func (p *Program) Dispatch(ctx context.Context, typed []string, verbs []Verb) error {
	if len(typed) > 0 && typed[0] == completeWord {
		return p.complete(verbs, typed[1:])
	}
	globals := GlobalFlags(p.DefaultActor())
	l, err := normalize(typed, globals, verbs)
	p.JSON = l.wantsJSON(os.Getenv("JOBLEDGER_JSON")) ||
		err != nil && slices.Contains(wordsBefore(typed), "--json")
	if err != nil {
		return err
	}
	switch {
	case l.help:
		return p.Help(l.verb, verbs)
	case l.version:
		l.verb, l.flags, l.args = "version", nil, nil
	case l.verb == "":
		if !p.JSON {
			p.writeFirstHelp(p.Stderr, verbs)
		}
		return Usagef("no command given")
	}
	v := verbs[slices.IndexFunc(verbs, func(v Verb) bool { return v.Name == l.verb })]
	if err := v.missingFlag(l); err != nil {
		return err
	}
	if err := v.checkArgs(l); err != nil {
		return err
	}
	if err := l.checkValues(v.QueuePatterns); err != nil {
		return err
	}
	p.Rest = l.rest
	return p.App(globals, []Verb{v}, l.givenGlobals()).RunContext(ctx, l.words())
}

// App returns the parser for verbs. It neither prints nor exits.
func (p *Program) App(globals []Flag, verbs []Verb, given map[string]bool) *urfave.App {
	here := len(verbs) == 1 && verbs[0].Here
	app := &urfave.App{
		Name:                      ProgramName,
		Usage:                     programUsage,
		UsageText:                 ProgramName + " COMMAND [flags] [arguments]",
		Flags:                     globals,
		Reader:                    p.stdin,
		Writer:                    io.Discard,
		ErrWriter:                 io.Discard,
		HideHelp:                  true,
		HideHelpCommand:           true,
		HideVersion:               true,
		DisableSliceFlagSeparator: true,
		Before:                    func(c *Context) error { return p.globals(c, given, here) },
		OnUsageError:              func(_ *Context, err error, _ bool) error { return flagError(Verb{}, err) },
		ExitErrHandler:            func(*Context, error) {},
	}
	for _, v := range verbs {
		app.Commands = append(app.Commands, v.command())
	}
	return app
}

// GlobalFlags returns the flags that every verb takes, anywhere on the line.
func GlobalFlags(actor string) []Flag {
	return []Flag{
		&StringFlag{Name: "db", Usage: "the ledger: a `FILE`, or postgres://USER@HOST/DATABASE", Value: DefaultDB,
			DefaultText: DefaultDB, EnvVars: []string{"JOBLEDGER_DB"}},
		&BoolFlag{Name: "json", Usage: "print JSON, one object a line", DisableDefaultText: true,
			EnvVars: []string{"JOBLEDGER_JSON"}},
		&StringFlag{Name: "actor", Usage: "the `NAME` under which the ledger records what you do", Value: actor,
			DefaultText: "cli:USER@HOST", EnvVars: []string{"JOBLEDGER_ACTOR"}},
		&BoolFlag{Name: "no-color", Usage: "no colors, not even on a terminal; NO_COLOR does the same",
			DisableDefaultText: true},
	}
}

// globals reads the global flags. An empty environment variable counts as unset. An empty flag is refused: it
// is probably a shell variable that was meant to name another ledger than the default. here is [Verb.Here].
func (p *Program) globals(c *Context, given map[string]bool, here bool) error {
	for name, value := range map[string]*string{"db": &p.DB, "actor": &p.Actor} {
		*value = c.String(name)
		if *value == "" && given[name] {
			return Usagef("--%s is empty", name)
		}
	}
	p.dbGiven = given["db"]
	if !p.dbGiven && os.Getenv("JOBLEDGER_DB") == "" {
		if p.DB = DefaultDB; !here {
			p.DB = findDB()
		}
		p.found = p.DB != DefaultDB
	}
	if err := ledger.CheckAddress(p.DB); err != nil {
		return err
	}
	p.Actor = cmp.Or(p.Actor, p.DefaultActor())
	if err := commands.CheckActor(p.Actor); err != nil {
		return WithHint(err, "--actor and JOBLEDGER_ACTOR say who acts")
	}
	if prefix := commands.ReservedActor(p.Actor); prefix != "" {
		err := Usagef("actor %q is not allowed: names with %s are for those that the program starts as such",
			words.Shorten(p.Actor), prefix)
		return WithHint(err, "name a person or a script, such as 'cli:ada' or 'deploy'")
	}
	p.JSON = c.Bool("json")
	p.Color = p.StdoutTerminal && !c.Bool("no-color") && os.Getenv("NO_COLOR") == "" &&
		os.Getenv("TERM") != "dumb"
	return nil
}

// DefaultActor returns the user at this machine, as in "cli:ada@build7".
func (p *Program) DefaultActor() string {
	name := strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	return "cli:" + strings.ToValidUTF8(name, "\uFFFD") + "@" + Hostname("localhost")
}

// Hostname returns the name of this machine, or otherwise if it has none.
func Hostname(otherwise string) string {
	host, err := os.Hostname()
	if err != nil {
		return otherwise
	}
	return strings.ToValidUTF8(host, "\uFFFD")
}

// ActorAs returns the acting name: that of --actor or its variable, else role.
func (p *Program) ActorAs(role string) string {
	if p.Actor != p.DefaultActor() {
		return p.Actor
	}
	return role
}
