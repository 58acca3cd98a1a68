package worker

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"jobledger/ledger"
	"jobledger/projection"
)

// baseEnv is what a command inherits even where Command.EnvOnly is a list: what programs and shells count on,
// and what holds no secrets. A name that ends with * stands for all that begin so.
var baseEnv = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR"}

// BaseEnv lists what a command inherits whatever Command.EnvOnly names.
func BaseEnv() []string { return slices.Clone(baseEnv) }

// CheckEnvName says why a command cannot inherit the variable called name, or nil.
func CheckEnvName(name string) error {
	switch {
	case strings.Contains(name, "="):
		before, _, _ := strings.Cut(name, "=")
		return fmt.Errorf("%q is not the name of a variable", before+"=…") // what follows may be secret
	case name == "" || strings.Contains(name, "\x00"):
		return fmt.Errorf("%q is not the name of a variable", name)
	case !inheritable(name):
		return fmt.Errorf("%s is never inherited", name)
	}
	return nil
}

// inheritable says no to what speaks of the worker's own job or service and not of the command's.
func inheritable(name string) bool {
	return !strings.HasPrefix(name, "JOBLEDGER_") && name != "NOTIFY_SOCKET"
}

// environment is what the child gets: what the worker has, as far as it may be inherited, and this job.
func (c *Command) environment(job projection.Job) []string {
	env := c.Env
	if env == nil {
		env = os.Environ()
	}
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return !inheritable(name) || c.EnvOnly != nil && !inBase(name) && !slices.Contains(c.EnvOnly, name)
	})
	return append(env, Environment(c.DB, job)...)
}

func inBase(name string) bool {
	return slices.ContainsFunc(baseEnv, func(base string) bool {
		begin, open := strings.CutSuffix(base, "*")
		return name == base || open && strings.HasPrefix(name, begin)
	})
}

// Environment is what tells a command which claim of which job it works on, as NAME=VALUE.
func Environment(db string, job projection.Job) []string {
	return []string{
		"JOBLEDGER_DB=" + db,
		"JOBLEDGER_JOB=" + string(job.ID),
		"JOBLEDGER_TOKEN=" + job.Token,
		"JOBLEDGER_WORKER=" + job.Worker.Name,
		"JOBLEDGER_QUEUE=" + job.Queue,
		"JOBLEDGER_KEY=" + job.Key,
		"JOBLEDGER_ATTEMPT=" + strconv.Itoa(job.Attempt),
		"JOBLEDGER_MAX_ATTEMPTS=" + strconv.Itoa(job.MaxAttempts),
		"JOBLEDGER_LEASE_UNTIL=" + ledger.FormatTime(job.LeaseUntil),
	}
}
