package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/failpoint"
)

const (
	programName  = "jobledger"
	defaultDB    = "jobledger.db"
	programUsage = "a job queue that keeps a ledger of everything that ever happened to a job"
)

// program is the outside world as a command sees it, and what the global flags say. Its stdout is buffered:
// a command that goes on for long, or that answers for something it has committed, calls flush.
type program struct {
	stdin  io.Reader
	stdout *bufio.Writer
	stderr io.Writer
	now    func() time.Time // in the zone in which times are shown and read
	ahead  time.Duration    // how far now is ahead of this machine's clock

	recount func() // reads --delay and the like again, when a ledger shows that now is another; may be nil

	stdoutTerminal bool
	stderrTerminal bool
	width          int // columns of the terminal on stdout; 0 when it is none: nothing is cut off

	// From the line and the environment, known when a verb runs.
	db    string
	json  bool
	actor string
	color bool     // on stdout
	rest  []string // what stood after "--", for verbs that want it
}

// newProgram is the program on this process's standard streams.
func newProgram() *program {
	p := &program{
		stdin:          os.Stdin,
		stdout:         bufio.NewWriterSize(os.Stdout, 64<<10),
		stderr:         os.Stderr,
		now:            failpoint.Now,
		stdoutTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		stderrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
	}
	if p.stdoutTerminal {
		p.width = 80
		if width, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil && width > 0 {
			p.width = width
		}
	}
	// Without this, Go lets a write into a closed pipe kill the process, and a worker must not die of its
	// reader. Notify, not Ignore: children would inherit the latter.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	// A timer makes the runtime open its poller now: it would die of it later, where it may open no more files.
	time.AfterFunc(time.Hour, func() {}).Stop()
	return p
}

// Run runs the one of verbs that typed names (the words after the program's name) and returns the exit code. An
// error has been printed on stderr by then.
func (p *program) Run(ctx context.Context, typed []string, verbs []verb) int {
	return p.finish(p.dispatch(ctx, typed, verbs))
}

// finish hands out what was printed, says why if err is not nil, and is the exit code.
func (p *program) finish(err error) int {
	if flushErr := p.flush(); err == nil {
		err = flushErr
	}
	code, message, hint := explain(err)
	if code == exitOK {
		return exitOK
	}
	if ledger.IsServerAddress(p.db) {
		hint = serverHint(err, hint)
	}
	p.message("%s", message)
	if hint != "" {
		fmt.Fprintf(p.stderr, "hint: %s\n", render.EscapeLines(render.Shorten(hint)))
	}
	return code
}

// dispatch finds out which verb is meant, checks what can be checked without it, and lets cli run it.
func (p *program) dispatch(ctx context.Context, typed []string, verbs []verb) error {
	if len(typed) > 0 && typed[0] == completeWord {
		return p.complete(verbs, typed[1:])
	}
	globals := globalFlags(p.defaultActor())
	l, err := normalize(typed, globals, verbs)
	if err != nil {
		return err
	}
	switch {
	case l.help:
		return p.help(l.verb, verbs)
	case l.version:
		l.verb, l.flags, l.args = "version", nil, nil
	case l.verb == "":
		p.writeHelp(p.stderr, verbs)
		return usagef("no command given")
	}
	v := verbs[slices.IndexFunc(verbs, func(v verb) bool { return v.name == l.verb })]
	if err := v.missingFlag(l); err != nil {
		return err
	}
	if err := v.checkArgs(l); err != nil {
		return err
	}
	if err := l.checkValues(); err != nil {
		return err
	}
	p.rest = l.rest
	return p.app(globals, []verb{v}, l.given).RunContext(ctx, l.words())
}

// app is what cli makes of the verbs. It neither prints nor exits; run does.
func (p *program) app(globals []cli.Flag, verbs []verb, given map[string]bool) *cli.App {
	app := &cli.App{
		Name:                      programName,
		Usage:                     programUsage,
		UsageText:                 programName + " COMMAND [flags] [arguments]",
		Flags:                     globals,
		Reader:                    p.stdin,
		Writer:                    io.Discard,
		ErrWriter:                 io.Discard,
		HideHelp:                  true,
		HideHelpCommand:           true,
		HideVersion:               true,
		DisableSliceFlagSeparator: true,
		Before:                    func(c *cli.Context) error { return p.globals(c, given) },
		OnUsageError:              func(_ *cli.Context, err error, _ bool) error { return flagError(verb{}, err) },
		ExitErrHandler:            func(*cli.Context, error) {},
	}
	for _, v := range verbs {
		app.Commands = append(app.Commands, v.command())
	}
	return app
}

// globalFlags may stand anywhere on the line.
func globalFlags(actor string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "db", Usage: "the ledger: a `FILE`, or postgres://USER@HOST/DATABASE", Value: defaultDB,
			DefaultText: defaultDB, EnvVars: []string{"JOBLEDGER_DB"}},
		&cli.BoolFlag{Name: "json", Usage: "print JSON, one object a line", DisableDefaultText: true,
			EnvVars: []string{"JOBLEDGER_JSON"}},
		&cli.StringFlag{Name: "actor", Usage: "the `NAME` under which the ledger records what you do", Value: actor,
			DefaultText: "cli:USER@HOST", EnvVars: []string{"JOBLEDGER_ACTOR"}},
		&cli.BoolFlag{Name: "no-color", Usage: "no colors, not even on a terminal; NO_COLOR does the same",
			DisableDefaultText: true},
	}
}

// globals takes the global flags over. An empty variable counts as unset, but an empty flag is refused: it
// is a shell variable that was meant to name some other ledger than the default.
func (p *program) globals(c *cli.Context, given map[string]bool) error {
	for name, value := range map[string]*string{"db": &p.db, "actor": &p.actor} {
		*value = c.String(name)
		if *value == "" && given[name] {
			return usagef("--%s is empty", name)
		}
	}
	if p.db == "" {
		p.db = defaultDB
	}
	if p.actor == "" {
		p.actor = p.defaultActor()
	}
	if err := commands.CheckActor(p.actor); err != nil {
		return withHint(err, "--actor and JOBLEDGER_ACTOR say who acts")
	}
	p.json = c.Bool("json")
	p.color = p.stdoutTerminal && !c.Bool("no-color") && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return nil
}

// defaultActor is the person at this machine, as in "cli:ada@build7".
func (p *program) defaultActor() string {
	name := strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	return "cli:" + strings.ToValidUTF8(name, "\uFFFD") + "@" + hostname("localhost")
}

// hostname is what the system calls this machine, or otherwise where it has no name.
func hostname(otherwise string) string {
	host, err := os.Hostname()
	if err != nil {
		return otherwise
	}
	return strings.ToValidUTF8(host, "\uFFFD")
}

// unknownCommand says so, with the nearest command that exists.
func unknownCommand(word string, verbs []verb) error {
	var names []string
	for _, v := range verbs {
		names = append(names, v.name)
	}
	err := usagef("unknown command %q", word)
	if near := nearest(word, names); near != "" {
		return withHint(err, "did you mean '%s %s'?", programName, near)
	}
	return withHint(err, "%s", seeHelp(""))
}
