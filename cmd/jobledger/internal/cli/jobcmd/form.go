package jobcmd

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/crontab"
	"jobledger/commands/argv"
)

// FormFlags say what goes with a command that a job carries.
func FormFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "sh", Usage: "CMD is text for /bin/sh, which gets the words after it as $1, $2 and " +
			"so on"},
		&cli.StringFlag{Name: "dir", Aliases: []string{"C"}, Usage: "run in `DIR`", DefaultText: "this folder"},
		cli.ListFlag("env", "record a variable too: `NAME` of this environment, NAME=VALUE, or 'AWS_*'; may be "+
			"repeated"),
		&cli.StringFlag{Name: "env-file", Usage: "the worker reads more variables from `FILE` at each start"},
		&cli.StringFlag{Name: "stdin", Usage: "the input is that of `FILE`, or of - this " +
			"one", DefaultText: "empty"},
	}
}

// Form is the command after the flags, with what [FormFlags] say of it.
func Form(p *cli.Program, c *cli.Context) (form argv.Form, err error) {
	form = argv.Form{Argv: Words(c, p.Rest), Env: map[string]string{}, Umask: umaskText()}
	if form.Dir, err = filepath.Abs(cmp.Or(c.String("dir"), ".")); err != nil {
		return form, err
	}
	if form.EnvFile, err = envFile(c); err != nil {
		return form, err
	}
	if err := recordEnv(form.Env, slices.Concat(alwaysRecorded, c.StringSlice("env"))); err != nil {
		return form, err
	}
	form.Stdin, err = input(p, c)
	return form, err
}

// Change puts what [FormFlags] and the words after them say into a form, and leaves the rest as it is.
func Change(p *cli.Program, c *cli.Context, form *argv.Form) (err error) {
	if len(p.Rest) > 0 {
		form.Argv = Words(c, p.Rest)
	}
	if c.IsSet("dir") {
		if form.Dir, err = filepath.Abs(c.String("dir")); err != nil {
			return err
		}
	}
	if c.IsSet("env-file") {
		if form.EnvFile, err = envFile(c); err != nil {
			return err
		}
	}
	if c.IsSet("stdin") {
		if form.Stdin, err = input(p, c); err != nil {
			return err
		}
	}
	form.Env = maps.Clone(form.Env)
	return recordEnv(form.Env, c.StringSlice("env"))
}

// Words are the arguments of a command as typed, or the shell's where --sh says that they are for it.
func Words(c *cli.Context, typed []string) []string {
	if c.Bool("sh") {
		return argv.Shell(typed[0], typed[1:]...)
	}
	return typed
}

// envFile is --env-file, from the root.
func envFile(c *cli.Context) (string, error) {
	if file := c.String("env-file"); file != "" {
		return filepath.Abs(file)
	}
	return "", nil
}

// input is what --stdin says: the standard input of the command.
func input(p *cli.Program, c *cli.Context) ([]byte, error) {
	if c.String("stdin") == "" {
		return nil, nil
	}
	return p.ReadFile("standard input of the command", c.String("stdin"))
}

// alwaysRecorded are the variables that a job carries without being asked to. LC_* means all that begin so.
var alwaysRecorded = []string{"PATH", "LANG", "LC_*", "TZ"}

// recordEnv puts the variables that names say into env: NAME and NAME* are of this environment.
func recordEnv(env map[string]string, names []string) error {
	for _, name := range names {
		if name, value, given := strings.Cut(name, "="); given {
			if err := argv.CheckName(name); err != nil {
				return cli.Usagef("--env: %w", err)
			}
			env[name] = value
			continue
		}
		begin, open := strings.CutSuffix(name, "*")
		if !open && argv.CheckName(name) != nil {
			return cli.Usagef("--env: %w", argv.CheckName(name))
		}
		for _, v := range os.Environ() {
			have, value, _ := strings.Cut(v, "=")
			if (have == name || open && strings.HasPrefix(have, begin)) && argv.CheckName(have) == nil {
				env[have] = value
			}
		}
	}
	return nil
}

// SaySecrets says which variables of a form look like secrets.
func SaySecrets(p *cli.Program, form argv.Form) {
	for _, name := range slices.Sorted(maps.Keys(form.Env)) {
		if crontab.IsSecret(name, form.Env[name]) {
			p.Message("the value of %s is recorded, and will be in backups and exports; --env-file keeps a secret out",
				name)
		}
	}
}

// CheckSecrets returns an error if a form has what looks like a secret, for one that becomes part of an event
// and so cannot be erased.
func CheckSecrets(form argv.Form) error {
	kept := func(what, name string) error {
		return cli.WithHint(cli.Usagef("%s would be in the ledger for ever", what),
			"write it as %s=… into a file that only you can read, and give that with --env-file", name)
	}
	for _, name := range slices.Sorted(maps.Keys(form.Env)) {
		if crontab.IsSecret(name, form.Env[name]) {
			return kept("the value of "+name, name)
		}
	}
	for _, text := range append(slices.Clone(form.Argv), string(form.Stdin)) {
		switch name, address := crontab.SecretIn(text); {
		case name != "":
			return kept("the value of "+name, name)
		case address:
			return kept("the password in an address", "URL")
		}
	}
	return nil
}
