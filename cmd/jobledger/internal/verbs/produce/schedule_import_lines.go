package produce

import (
	"fmt"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"jobledger/cmd/jobledger/internal/buildinfo"
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/crontab"
	"jobledger/cmd/jobledger/internal/when"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands/argv"
	"jobledger/commands/schedule"
	"jobledger/ledger/event"
	"jobledger/projection/schedules"
)

// crontabTag is the tag of the schedules of a crontab, with whose it is.
const crontabTag = "crontab"

// cronPath is PATH where a crontab sets none, and cronShell what runs its commands then.
const (
	cronPath  = "/usr/bin:/bin:/usr/sbin:/sbin"
	cronShell = "/bin/sh"
)

// specify names the lines and makes their schedules, with those that there are. It writes nothing.
func (p *Verbs) specify(im *crontabImport, all []schedules.Schedule) error {
	var known []crontab.Known
	var others []string
	for _, s := range all {
		if s.Spec.Tags[crontabTag] != im.source {
			others = append(others, s.Spec.Name)
			continue
		}
		k := crontab.Known{Name: s.Spec.Name, When: s.Spec.Cron}
		if form, err := argv.Decode([]byte(s.Spec.Payload)); err == nil && len(form.Argv) == 3 {
			k.Command = form.Argv[2]
		}
		known = append(known, k)
	}
	im.lines = slices.Clone(im.read)
	crontab.Name(im.lines, known, others)
	var wrong []string
	files := make(map[string]string) // path by content
	im.specs, im.reboot, im.kept, im.files = nil, nil, nil, make(map[string]string)
	for _, l := range im.lines {
		if l.Reboot() {
			if err := im.keepReboot(l, files); err != nil {
				return err
			}
			continue
		}
		spec, err := im.spec(l, files)
		if err == nil {
			err = schedule.Check(spec)
		}
		if err != nil {
			text := err.Error()
			if !strings.HasPrefix(text, "line ") {
				text = fmt.Sprintf("line %d: %s", l.Number, text)
			}
			wrong = append(wrong, text)
		}
		im.specs = append(im.specs, spec)
	}
	if wrong != nil {
		return cli.Usagef("%s; nothing was imported", strings.Join(wrong, "; "))
	}
	return nil
}

// spec is the schedule of a line. The files of secrets so far are in files, by their content.
func (im *crontabImport) spec(l crontab.Line, files map[string]string) (spec schedule.Spec, err error) {
	spec = schedule.Spec{Name: l.Name, Queue: im.queue, Cron: l.When, Zone: im.zone, CatchUp: im.catchUp,
		Overlap: event.OverlapAllow, MaxAttempts: 1, Form: event.FormArgv,
		Tags: map[string]string{crontabTag: im.source}}
	zone, err := l.Zone()
	if err != nil {
		return spec, err
	}
	if zone != "" {
		spec.Zone = zone
	}
	if spec.Jitter, err = l.Jitter(); err != nil {
		return spec, err
	}
	if err := l.CheckSecrets(); err != nil {
		return spec, err
	}
	form, secrets := im.form(l)
	if len(secrets) > 0 {
		if form.EnvFile, err = im.secretsFile(secrets, files); err != nil {
			return spec, err
		}
	}
	payload, err := form.Encode()
	spec.Payload = string(payload)
	return schedule.Complete(spec), err
}

// form is the command of a line, as cron runs it, without its secrets.
func (im *crontabImport) form(l crontab.Line) (form argv.Form, secrets map[string]string) {
	env, secrets := l.Split()
	form = argv.Form{Argv: []string{cronShell, "-c", l.Command}, Dir: homeFolder(), Env: env,
		Stdin: []byte(l.Stdin)}
	if shell, ok := l.Setting("SHELL"); ok {
		form.Argv[0] = shell
	}
	if home, ok := l.Setting("HOME"); ok {
		form.Dir = home
	}
	if env["PATH"] == "" {
		env["PATH"] = cronPath
	}
	return form, secrets
}

// secretsFile returns the file that holds these variables: a crontab whose settings change has several.
func (im *crontabImport) secretsFile(secrets, files map[string]string) (path string, err error) {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		fmt.Fprintf(&b, "%s=%s\n", name, secrets[name])
		if !slices.Contains(im.kept, name) {
			im.kept = append(im.kept, name)
		}
	}
	content := b.String()
	if path, ok := files[content]; ok {
		return path, nil
	}
	folder, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	name := "cron"
	if !im.installed {
		name += "-" + crontab.Program(im.source)
	}
	if n := len(files); n > 0 {
		name += fmt.Sprintf("-%d", n+1)
	}
	path = filepath.Join(folder, buildinfo.ProgramName, name+".env")
	files[content], im.files[path] = path, content
	return path, nil
}

// localZone returns the name of the zone of this machine, in which cron counts.
func (p *Verbs) localZone() (string, error) {
	name := when.ZoneName(p.Now().Location())
	if name == "" {
		return "", cli.WithHint(cli.Usagef("the zone of this machine has no name that is known"),
			"write one into the first line of the crontab, such as CRON_TZ=Europe/Berlin")
	}
	return name, nil
}

// keepReboot notes what is to be written for a line that stays in cron.
func (im *crontabImport) keepReboot(l crontab.Line, files map[string]string) (err error) {
	file := ""
	if _, secrets := l.Split(); len(secrets) > 0 {
		if file, err = im.secretsFile(secrets, files); err != nil {
			return err
		}
	}
	im.reboot = append(im.reboot, fmt.Sprintf("line %d: @reboot stays in cron; as a job: %s", l.Number,
		rebootLine(im, l, file)))
	return nil
}

// rebootLine is the line of a crontab that has a command for @reboot run as a job.
func rebootLine(im *crontabImport, l crontab.Line, secrets string) string {
	parts := []string{"@reboot jobledger run -q", im.queue}
	env, _ := l.Split()
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !slices.Contains(ofCron, name) {
			parts = append(parts, "--env", name)
		}
	}
	if secrets != "" {
		parts = append(parts, "--env-file", words.QuoteShell(secrets))
	}
	if l.Stdin != "" {
		parts = append(parts, "--stdin -")
	}
	if shell, ok := l.Setting("SHELL"); ok {
		parts = append(parts, words.QuoteShell(shell), "-c", words.QuoteShell(l.Command))
	} else {
		parts = append(parts, "--sh", words.QuoteShell(l.Command))
	}
	escape := strings.NewReplacer("%", `\%`, "\n", "%")
	line := escape.Replace(strings.Join(parts, " "))
	if l.Stdin != "" {
		line += "%" + escape.Replace(strings.TrimSuffix(l.Stdin, "\n"))
	}
	return line
}

// ofCron are the variables that a command needs not, because they are cron's or run has them.
var ofCron = []string{"CRON_TZ", "HOME", "LANG", "MAILFROM", "MAILTO", "PATH", "RANDOM_DELAY", "SHELL", "TZ"}

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return os.Getenv("USER")
}

// homeFolder is the folder of this user, in which cron starts commands.
func homeFolder() string {
	if u, err := user.Current(); err == nil && u.HomeDir != "" {
		return u.HomeDir
	}
	home, _ := os.UserHomeDir()
	return home
}
