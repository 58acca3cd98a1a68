package produce

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/crontab"
	"jobledger/cmd/jobledger/internal/logs"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/commands/schedule"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/defaults"
	"jobledger/projection/schedules"
)

// cronQueue is where the jobs of a crontab go, and of schedules that run a command.
const cronQueue = "cron"

func (p *Verbs) importSchedules(c *cli.Context, args []string) error {
	if args[0] != "crontab" {
		return cli.WithHint(cli.Usagef("schedule import takes crontab, not %q", args[0]), "%s",
			cli.SeeHelp("schedule"))
	}
	installed := len(args) == 1 && !c.IsSet("system")
	switch {
	case len(args) == 2 && c.IsSet("system"):
		return cli.Usagef("give one of FILE and --system FILE")
	case !installed && (c.Bool("take-over") || c.Bool("finish")):
		return cli.WithHint(cli.Usagef("--take-over is for your own crontab, which cron runs"),
			"comment the lines of the file out where cron reads them, then resume the schedules")
	case c.Bool("finish") && (c.Bool("take-over") || c.Bool("prune")):
		return cli.Usagef("--finish goes alone")
	case c.Bool("finish"):
		service, err := p.Open(c.Context)
		if err != nil {
			return err
		}
		defer service.Store.Close()
		return p.finishTakeOver(c, p.keeper(service))
	}
	im, err := p.readImport(c, args[1:])
	if err != nil {
		return err
	}
	if err := p.UseOwnPlace(); err != nil {
		return err
	}
	service, err := p.OpenOrCreate(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	if installed && c.Bool("take-over") { // an earlier one may have been interrupted
		if err := p.finishTakeOver(c, p.keeper(service)); err != nil {
			return err
		}
		if im, err = p.readImport(c, nil); err != nil {
			return err
		}
	}
	return p.carryOut(c, service, im)
}

// crontabImport is a crontab, and what is to become of it.
type crontabImport struct {
	source    string // the value of the tag crontab of its schedules
	text      string
	installed bool // cron runs it
	queue     string
	catchUp   string
	zone      string            // of lines without CRON_TZ
	read      []crontab.Line    // the lines of this user
	lines     []crontab.Line    // the same, with the names of their schedules
	specs     []schedule.Spec   // of the lines that are not @reboot
	reboot    []string          // what is said of lines for @reboot
	files     map[string]string // of secrets: content by path
	kept      []string          // the names of secrets
	others    map[string][]int  // the lines of other users
}

// carryOut makes the schedules of the import, paused, and takes its lines over if that is asked for.
func (p *Verbs) carryOut(c *cli.Context, service *commands.Service, im *crontabImport) error {
	var all []schedules.Schedule
	err := service.Store.Read(c.Context, func(tx *ledger.Tx) (err error) {
		if all, err = schedules.List(c.Context, tx); err != nil {
			return err
		}
		return checkCronQueue(c, tx, im.queue, all)
	})
	if err != nil {
		return err
	}
	if err := p.specify(im, all); err != nil {
		return err
	}
	var a schedule.Adoption
	a.Specs = im.specs
	var left []string
	for _, s := range all {
		gone := s.Spec.Tags[crontabTag] == im.source &&
			!slices.ContainsFunc(im.specs, func(spec schedule.Spec) bool { return spec.Name == s.Spec.Name })
		switch {
		case gone && c.Bool("prune"):
			a.Remove = append(a.Remove, s.Spec.Name)
		case gone:
			left = append(left, s.Spec.Name)
		}
	}
	names := make(map[int]string)
	for _, l := range im.lines {
		if im.installed && l.State == crontab.Active && !l.Reboot() {
			a.Elsewhere = append(a.Elsewhere, l.Name)
			names[l.Number] = l.Name
		}
	}
	if c.Bool("take-over") {
		if err := p.checkDelays(im, a.Elsewhere); err != nil {
			return err
		}
	}
	for path, content := range im.files {
		if err := writePrivate(path, content); err != nil {
			return fmt.Errorf("keep secrets out of the ledger: %w", err)
		}
	}
	if len(im.specs) > 0 {
		if _, err := service.SetCommands(c.Context, p.Actor, im.queue, true, c.String("reason")); err != nil {
			return err
		}
	}
	keeper := p.keeper(service)
	changes, err := keeper.Adopt(c.Context, a, c.String("reason"))
	if err != nil {
		return err
	}
	saved := ""
	if c.Bool("take-over") && len(names) > 0 {
		if saved, err = p.takeOver(c, keeper, im.text, names); err != nil {
			return err
		}
		if err := p.asNow(c, service, changes); err != nil {
			return err
		}
	}
	if p.JSON {
		return p.printChanges(c, service, changes)
	}
	return p.sayImport(im, changes, left, saved, len(names))
}

// checkCronQueue returns an error if a queue has jobs that carry no commands: it would take them no more.
func checkCronQueue(c *cli.Context, tx *ledger.Tx, queue string, all []schedules.Schedule) error {
	set, err := defaults.Current(c.Context, tx)
	if err != nil || set[queue].Commands {
		return err
	}
	unused, err := projection.QueueUnused(c.Context, tx, queue)
	if err != nil {
		return err
	}
	ofQueue := func(s schedules.Schedule) bool { return s.Spec.Queue == queue }
	if unused && !slices.ContainsFunc(all, ofQueue) {
		return nil
	}
	return cli.WithHint(cli.Exitf(cli.ExitConflict, "the jobs of the queue %s carry no commands", queue),
		"give another queue: -q NAME")
}

// makeCronQueue makes the queue one for commands, unless it has other jobs.
func (p *Verbs) makeCronQueue(c *cli.Context, service *commands.Service, queue string) error {
	err := service.Store.Read(c.Context, func(tx *ledger.Tx) error {
		all, err := schedules.List(c.Context, tx)
		if err != nil {
			return err
		}
		return checkCronQueue(c, tx, queue, all)
	})
	if err == nil {
		_, err = service.SetCommands(c.Context, p.Actor, queue, true, c.String("reason"))
	}
	return err
}

// asNow gives changes their schedules as they are now.
func (p *Verbs) asNow(c *cli.Context, service *commands.Service, changes []schedule.Change) error {
	return service.Store.Read(c.Context, func(tx *ledger.Tx) error {
		for i, change := range changes {
			if change.Done == schedule.Removed {
				continue
			}
			s, err := schedules.Get(c.Context, tx, change.Spec.Name)
			if err != nil {
				return err
			}
			changes[i].Schedule = s
		}
		return nil
	})
}

// checkDelays returns an error while cron may be about to start one of these late, by RANDOM_DELAY.
func (p *Verbs) checkDelays(im *crontabImport, names []string) error {
	for _, spec := range im.specs {
		if !slices.Contains(names, spec.Name) {
			continue
		}
		times, err := schedule.Times(spec)
		if err != nil {
			return err
		}
		at := times.Next(p.Now().Add(-spec.Jitter))
		if spec.Jitter > 0 && !at.IsZero() && at.Before(p.Now()) {
			zone := p.Now().Location()
			return cli.Exitf(cli.ExitBusy, "%s was due at %s, and by its RANDOM_DELAY cron may start it until %s: "+
				"take over after that", spec.Name, words.Time(at.In(zone)), words.Time(at.Add(spec.Jitter).In(zone)))
		}
	}
	return nil
}

// readImport reads the crontab that the command line names. A line of it that cannot be read is an error.
func (p *Verbs) readImport(c *cli.Context, file []string) (im *crontabImport, err error) {
	im = &crontabImport{queue: cmp.Or(c.String("queue"), cronQueue),
		catchUp: cmp.Or(c.String("catch-up"), event.CatchUpNone), installed: len(file) == 0 && !c.IsSet("system")}
	path := c.String("system")
	if len(file) > 0 {
		path = file[0]
	}
	if im.installed {
		im.source = userName() + "@" + cli.Hostname("localhost")
		im.text, err = installedCrontab(c.Context)
	} else {
		im.text, err = p.readCrontabFile(path)
		if im.source = path; path != "-" {
			im.source, _ = filepath.Abs(path) // it has been read
		}
	}
	if err != nil {
		return nil, err
	}
	lines, err := crontab.Read(im.text, c.IsSet("system"))
	if err != nil {
		return nil, eachLineWrong(err)
	}
	im.others = make(map[string][]int)
	for _, l := range lines {
		if l.User != "" && l.User != userName() {
			im.others[l.User] = append(im.others[l.User], l.Number)
			continue
		}
		im.read = append(im.read, l)
	}
	if len(lines) == 0 {
		return nil, cli.Exitf(cli.ExitNothing, "the crontab has no line that runs a command")
	}
	if im.zone, err = p.localZone(); err != nil {
		return nil, err
	}
	return im, p.specify(im, nil) // before a ledger is made
}

// readCrontabFile returns the content of a file, "-" for standard input.
func (p *Verbs) readCrontabFile(path string) (string, error) {
	content, done, err := p.OpenInput("the crontab", path)
	if err != nil {
		return "", err
	}
	defer done()
	text, err := io.ReadAll(io.LimitReader(content, maxScheduleFile+1))
	if err == nil && len(text) > maxScheduleFile {
		err = cli.Usagef("the file is larger than 8 MiB")
	}
	return string(text), err
}

// eachLineWrong is the error about lines that cannot be read; nothing was done.
func eachLineWrong(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var texts []string
		for _, e := range joined.Unwrap() {
			texts = append(texts, e.Error())
		}
		err = errors.New(strings.Join(texts, "; "))
	}
	return cli.Usagef("%w; nothing was imported", err)
}

// sayImport prints what became of each line, and what is to be done now. cron ran so many of them.
func (p *Verbs) sayImport(im *crontabImport, changes []schedule.Change, left []string, saved string,
	active int) error {
	commandOf := make(map[string]string)
	for _, l := range im.lines {
		commandOf[l.Name] = l.Text
	}
	count := make(map[string]int)
	t := &words.Table{Columns: []words.Column{{Title: "NAME", Least: 8}, {Title: "WHEN", Least: 9},
		{Title: "NEXT"}, {Title: "STATE"}, {Title: "COMMAND", Least: 12}}}
	paused := false
	for _, change := range changes {
		count[change.Done]++
		if change.Done == schedule.Removed {
			continue
		}
		state := "on"
		if change.Paused {
			state, paused = "paused", true
		}
		next := "-"
		if times, err := schedule.Times(change.Spec); err == nil {
			if at := cmp.Or(change.Next, times.Next(p.Now())); !at.IsZero() {
				next = words.Time(at.In(p.Now().Location()))
			}
		}
		t.Add(change.Spec.Name, words.TimesText(change.Spec), next, state, commandOf[change.Spec.Name])
	}
	if len(im.specs) > 0 {
		if err := p.PrintTable(t); err != nil {
			return err
		}
	}
	var done []string
	for _, what := range []string{schedule.Added, schedule.Changed, schedule.Unchanged, schedule.Removed} {
		if n := count[what]; n > 0 {
			done = append(done, fmt.Sprintf("%d %s", n, what))
		}
	}
	if len(done) > 0 {
		if err := p.MessageAfter("schedules of the queue %s: %s", im.queue, strings.Join(done, ", ")); err != nil {
			return err
		}
	}
	p.sayLeft(im, left)
	switch {
	case saved != "":
		p.Message("cron does not run these lines any more: they are comments in the crontab, which was saved as %s",
			saved)
	case active > 0:
		p.Message("cron still runs these lines, so their schedules are paused; --take-over changes both")
	case paused:
		p.Message("what is paused begins with 'jobledger schedule resume NAME', once nothing else runs it")
	}
	if len(im.specs) > 0 {
		p.Message("a worker must run: %s", p.workerFor(im.queue))
	}
	return nil
}

// userUnit is the package's unit of a worker for the commands of a user.
const userUnit = "/usr/lib/systemd/user/jobledger-commands.service"

// workerFor is the line that has a worker run what the jobs of a queue carry.
func (p *Verbs) workerFor(queue string) string {
	line := "jobledger work --commands -q " + queue
	own, err := logs.StateFolder()
	if _, missing := os.Stat(userUnit); missing != nil || err != nil || queue != cronQueue ||
		cli.AbsoluteDSN(p.DB) != filepath.Join(own, "jobs.db") {
		return line
	}
	if os.Geteuid() == 0 {
		return "systemctl enable --now jobledger-commands@root"
	}
	return "systemctl --user enable --now jobledger-commands, and loginctl enable-linger; or as root: " +
		"systemctl enable --now jobledger-commands@" + userName()
}

// sayLeft says what of the crontab is not in the schedules.
func (p *Verbs) sayLeft(im *crontabImport, left []string) {
	mail := false
	for _, l := range im.lines {
		if to, set := l.Setting("MAILTO"); !l.Reboot() && (to != "" || !set) {
			mail = true
		}
	}
	for _, text := range im.reboot {
		p.Message("%s", text)
	}
	for _, user := range slices.Sorted(maps.Keys(im.others)) {
		p.Message("%s of %s: sudo -u %s jobledger schedule import crontab --system %s", linesText(im.others[user]),
			user, user, words.QuoteShell(im.source))
	}
	if len(im.kept) > 0 {
		p.Message("%s: not in the ledger; a worker reads it from %s", strings.Join(im.kept, ", "),
			strings.Join(slices.Sorted(maps.Keys(im.files)), ", "))
	}
	if mail {
		p.Message("what a run prints is kept for 'jobledger logs'; no mail is sent")
	}
	if len(left) > 0 {
		p.Message("not in the crontab any more: %s; --prune removes them", strings.Join(left, ", "))
	}
}

func linesText(numbers []int) string {
	if len(numbers) == 1 {
		return fmt.Sprintf("line %d", numbers[0])
	}
	return "lines " + strings.Join(words.Of(numbers, func(n int) string { return fmt.Sprint(n) }), ", ")
}
