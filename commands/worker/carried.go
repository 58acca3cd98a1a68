package worker

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"jobledger/commands"
	"jobledger/commands/argv"
	"jobledger/commands/worker/child"
	"jobledger/ledger/event"
	"jobledger/ledger/ownerfile"
	"jobledger/projection"
)

// The codes with which a job that carries its command fails for good because it cannot be run.
const (
	codeCannotRun  = "cannot_run"
	codeNotFound   = "not_found"
	codeNoFolder   = "no_folder"
	codeBadEnvFile = "bad_env_file"
)

// codeOf is the code of an exit code that says that a command cannot be run.
func codeOf(exit int) string {
	if exit == exitNotFound {
		return codeNotFound
	}
	return codeCannotRun
}

// cannotCarry records that the command of job cannot be run, now or later.
func cannotCarry(job projection.Job, code string, why error) commands.Command {
	return commands.Fail{Token: job.Token, Code: code, Detail: commands.Detail(why.Error()), NoRetry: true}
}

// carried makes spec run what job carries, or returns how the job ends because that cannot be run.
func (c *Command) carried(job projection.Job, spec *child.Spec) commands.Command {
	if c.May != nil {
		if err := c.May(); err != nil {
			return c.giveBack(job, err)
		}
	}
	if job.Form != event.FormArgv {
		return cannotCarry(job, codeCannotRun, errors.New("it carries no command"))
	}
	if job.Payload == nil {
		return cannotCarry(job, codeCannotRun, errors.New("its command was erased, or is missing"))
	}
	form, err := argv.Decode(job.Payload)
	if err != nil {
		return cannotCarry(job, codeCannotRun, err)
	}
	if info, err := os.Stat(form.Dir); err != nil || !info.IsDir() {
		return cannotCarry(job, codeNoFolder, cmp.Or(err, fmt.Errorf("%s is not a folder", form.Dir)))
	}
	secret, err := readEnvFile(form.EnvFile)
	if err != nil {
		return cannotCarry(job, codeBadEnvFile, err)
	}
	vars := ownVariables()
	for _, more := range []map[string]string{form.Env, secret} {
		for name, value := range more {
			vars[name] = value
		}
	}
	path, exit, err := child.Find(form.Argv[0], form.Dir, vars["PATH"])
	if err != nil {
		return cannotCarry(job, codeOf(exit), err)
	}
	spec.Path, spec.Name, spec.Args = path, form.Argv[0], form.Argv[1:]
	spec.Dir, spec.Stdin, spec.Env = form.Dir, form.Stdin, nil
	if mask, _ := form.Mask(); mask >= 0 {
		spec.Umask = &mask
	}
	for name, value := range vars {
		spec.Env = append(spec.Env, name+"="+value)
	}
	spec.Env = append(append(spec.Env, traceOf(job)...), Environment(c.DB, job)...)
	return nil
}

// maxEnvFile is the size of a file with variables, in bytes.
const maxEnvFile = 64 << 10

// readEnvFile reads variables, NAME=VALUE a line, from a file that only its user and root may read or write.
// Blank lines and those that begin with # are left out.
func readEnvFile(path string) (vars map[string]string, err error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|ownerfile.NoWait, 0) // a pipe must not hold it up
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a plain file", path)
	case !(ownerfile.Share{}).Owns(info):
		return nil, fmt.Errorf("%s belongs to another user", path)
	case ownerfile.OpenToOthers(info):
		return nil, ownerfile.Check(path, info)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxEnvFile+1))
	if err != nil || len(text) > maxEnvFile {
		return nil, cmp.Or(err, fmt.Errorf("%s is larger than 64 KiB", path))
	}
	vars = make(map[string]string)
	for n, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || argv.CheckName(name) != nil || strings.Contains(value, "\x00") { // what it holds may be secret
			return nil, fmt.Errorf("%s: line %d is not NAME=VALUE", path, n+1)
		}
		vars[name] = value
	}
	return vars, nil
}

// defaultPath is where programs are searched whose job has no PATH.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// ownVariables are those of the user of this process, and PATH.
func ownVariables() map[string]string {
	vars := map[string]string{"PATH": defaultPath, "HOME": cmp.Or(os.Getenv("HOME"), "/"), "SHELL": "/bin/sh"}
	if name := os.Getenv("USER"); name != "" {
		vars["USER"], vars["LOGNAME"] = name, name
	}
	users, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return vars
	}
	uid := strconv.Itoa(os.Geteuid())
	for lines := bufio.NewScanner(bytes.NewReader(users)); lines.Scan(); {
		if f := strings.Split(lines.Text(), ":"); len(f) == 7 && f[2] == uid {
			vars["USER"], vars["LOGNAME"], vars["HOME"] = f[0], f[0], cmp.Or(f[5], "/")
			vars["SHELL"] = cmp.Or(f[6], "/bin/sh")
			break
		}
	}
	return vars
}
