package worker

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"jobledger/ledger/event"
	"jobledger/projection"
)

// baseEnv lists what a command inherits even if Command.EnvOnly is a list: variables that most programs
// expect, and that hold no secrets. A name that ends with * matches every name that begins so.
var baseEnv = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR"}

// BaseEnv returns the names that a command inherits whatever Command.EnvOnly lists. LC_* means all that begin
// so.
func BaseEnv() []string { return slices.Clone(baseEnv) }

// CheckEnvName returns an error if a command cannot inherit a variable of that name.
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

// inheritable returns false for variables that describe the worker's own job or service.
func inheritable(name string) bool {
	return !strings.HasPrefix(name, "JOBLEDGER_") && name != "NOTIFY_SOCKET"
}

// environment returns the variables of the command: those that it inherits, and those of the job.
func (c *Command) environment(job projection.Job) []string {
	env := c.Env
	if env == nil {
		env = os.Environ()
	}
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return !inheritable(name) || c.EnvOnly != nil && !inBase(name) && !slices.Contains(c.EnvOnly, name)
	})
	if trace := traceOf(job); trace != nil { // not that of the worker
		env = slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, "TRACEPARENT=") })
		env = append(env, trace...)
	}
	return append(append(env, Environment(c.DB, job)...), c.Also...)
}

func inBase(name string) bool {
	return slices.ContainsFunc(baseEnv, func(base string) bool {
		begin, open := strings.CutSuffix(base, "*")
		return name == base || open && strings.HasPrefix(name, begin)
	})
}

// Environment returns the variables, as NAME=VALUE, that identify the claim and the job to a command. db is
// the ledger, or the URL of a server that has it.
func Environment(db string, job projection.Job) []string {
	where := "JOBLEDGER_DB="
	for _, scheme := range []string{"https://", "http://", "unix:"} {
		if strings.HasPrefix(db, scheme) {
			where = "JOBLEDGER_URL="
		}
	}
	env := []string{
		where + db,
		"JOBLEDGER_JOB=" + string(job.ID),
		"JOBLEDGER_TOKEN=" + job.Token,
		"JOBLEDGER_WORKER=" + job.Worker.Name,
		"JOBLEDGER_QUEUE=" + job.Queue,
		"JOBLEDGER_KEY=" + job.Key,
		"JOBLEDGER_ATTEMPT=" + strconv.Itoa(job.Attempt),
		"JOBLEDGER_MAX_ATTEMPTS=" + strconv.Itoa(job.MaxAttempts),
		"JOBLEDGER_LEASE_UNTIL=" + event.FormatTime(job.LeaseUntil),
	}
	if len(job.After) > 0 {
		env = append(env, "JOBLEDGER_AFTER="+afterText(job.After))
	}
	return env
}

// afterText returns the ids of the jobs that a job was enqueued after, separated by blanks.
func afterText(refs []string) string {
	ids := make([]string, len(refs))
	for i, ref := range refs {
		ids[i], _, _ = strings.Cut(ref, ":")
	}
	return strings.Join(ids, " ")
}
