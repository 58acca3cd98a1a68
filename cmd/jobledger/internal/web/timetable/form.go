package timetable

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/files/joblines"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/web/act"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/cmd/jobledger/internal/when"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands/remote/wire"
	"jobledger/commands/schedule"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/schedules"
)

// newPath is the address of the form of a new schedule. That of one that there is has its name.
const newPath = "/new/schedule"

// formPage is the form of a schedule: of a new one, or of the one in the path.
func (p *Pages) formPage(w http.ResponseWriter, r *http.Request) error {
	f := &scheduleForm{acts: p.Acts, name: r.PathValue("schedule"), bodies: api.MaySeeBodies(r.Context()),
		isNew: r.URL.Path == newPath, now: p.Now()}
	if f.isNew {
		given, err := frame.Form(r)
		if err != nil {
			return err
		}
		f.name = strings.TrimSpace(given.Get("name"))
		return p.SettingPage(w, r, "New schedule", "", "/schedules", f)
	}
	if err := schedule.CheckName(f.name); err != nil {
		return err
	}
	return p.SettingPage(w, r, "Schedule "+f.name, "", "/schedules/"+url.PathEscape(f.name), f)
}

// scheduleForm sets a schedule.
type scheduleForm struct {
	acts   *act.Acts
	name   string
	isNew  bool
	bodies bool // the caller may see payloads
	now    time.Time
	at     schedules.Schedule // without a name: there is none
	to     event.ScheduleSet
}

func (f *scheduleForm) Load(ctx context.Context, tx *ledger.Tx, _ time.Time) (seen int64, err error) {
	if f.isNew {
		return 0, nil
	}
	if f.at, err = schedules.Get(ctx, tx, f.name); err != nil {
		return 0, err
	}
	if !f.at.Exists() {
		return 0, errNone(f.name, false)
	}
	last, err := act.ScheduleSetAt(ctx, tx, f.name)
	return last.Pos, err
}

func (f *scheduleForm) Is(zone *time.Location) (text, by string) {
	if f.isNew {
		return "", ""
	}
	return f.text(f.at.Spec), words.SetBy(f.at.Since, f.at.Actor, f.at.Reason, zone)
}

// text says what a spec sets.
func (f *scheduleForm) text(spec event.ScheduleSet) string {
	text := words.TimesText(spec) + " into queue " + spec.Queue
	if common := words.WhenText(spec); common != "" {
		text = common + ": " + text
	}
	return text
}

// hasPayload reports whether the form has the payload: not that of a command, nor one that the caller may not
// see, nor one that a page shows otherwise than it is.
func (f *scheduleForm) hasPayload() bool {
	return f.at.Spec.Form == "" && (f.bodies || f.isNew) && asShown(f.at.Spec.Payload)
}

// hasTags reports whether the form has the tags.
func (f *scheduleForm) hasTags() bool {
	for name, value := range f.at.Spec.Tags {
		if !asShown(name+value) || strings.Contains(name+value, "\n") || strings.Contains(name, "=") {
			return false
		}
	}
	return true
}

// asShown reports whether a page shows text as it is.
func asShown(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && words.Harmful(r) })
}

// everyWord is before the period in the field of the times.
const everyWord = "every "

func (f *scheduleForm) Fields() (all []frame.Field) {
	s := print.NewScheduleJSON(f.at, "").SpecJSON
	if f.isNew {
		s = print.SpecJSON{Zone: when.ZoneName(f.now.Location()), Overlap: event.OverlapSkip,
			CatchUp: event.CatchUpLast}
		all = append(all, frame.Field{Name: "name", Label: "Name", Needed: true})
	}
	times, number := s.Cron, func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	if f.at.Spec.Every > 0 {
		times = words.TimesText(f.at.Spec)
	}
	all = append(all, frame.Field{Name: "queue", Label: "Queue", Value: s.Queue, Needed: true},
		frame.Field{Name: "cron", Label: "When", Value: times, Needed: true,
			Hint: "minute, hour, day, month, day of the week: 30 2 * * *; or @daily; or every 5m"},
		frame.Field{Name: "zone", Label: "Zone", Value: s.Zone, Hint: "of these times; every 5m has none"})
	if f.hasPayload() {
		all = append(all, frame.Field{Name: "payload", Label: "Payload", Value: f.at.Spec.Payload, Lines: true})
	}
	all = append(all,
		frame.Field{Name: "overlap", Label: "While the job before has not ended", Value: s.Overlap,
			Choices: []string{event.OverlapSkip, event.OverlapWait, event.OverlapReplace, event.OverlapAllow}},
		frame.Field{Name: "catch_up", Label: "Missed ticks that make a job", Value: s.CatchUp,
			Choices: []string{event.CatchUpLast, event.CatchUpAll, event.CatchUpNone}},
		frame.Field{Name: "within", Label: "None older than", Value: words.DurationIfAny(f.at.Spec.Within),
			Hint: "such as 6h"},
		frame.Field{Name: "jitter", Label: "Each up to so much later",
			Value: words.DurationIfAny(f.at.Spec.Jitter), Hint: "such as 5m"},
		frame.Field{Name: "priority", Label: "Priority", Value: number(s.Priority)},
		frame.Field{Name: "max_attempts", Label: "Attempts", Value: number(s.MaxAttempts), Hint: "without it 5"},
		frame.Field{Name: "max_runtime", Label: "Max runtime of an attempt",
			Value: words.DurationIfAny(f.at.Spec.MaxRuntime)},
		frame.Field{Name: "backoff", Label: "Backoff", Value: s.Backoff, Long: true,
			Hint: "without it that of the queue"},
		frame.Field{Name: "group", Label: "Group", Value: s.Group},
		frame.Field{Name: "version", Label: "Only workers of version", Value: s.Version},
		frame.Field{Name: "requires", Label: "Only workers with", Value: strings.Join(s.Requires, " "),
			Hint: "capabilities, with spaces between"})
	if f.hasTags() {
		all = append(all, frame.Field{Name: "tags", Label: "Tags", Lines: true,
			Value: strings.Join(words.TagPairs(s.Tags), "\n"), Hint: "name=value, one a line"})
	}
	return all
}

func (f *scheduleForm) Read(given url.Values) (wrong []wire.InputError) {
	text := func(name string) string { return strings.TrimSpace(given.Get(name)) }
	bad := func(field string, err error) {
		if err != nil {
			in, _ := wire.InputOf(wire.InField(field, err))
			wrong = append(wrong, in)
		}
	}
	number := func(name string) (n int) {
		if text(name) != "" {
			var err error
			if n, err = strconv.Atoi(text(name)); err != nil {
				bad(name, fault.Usagef("%.40q is not a whole number", text(name)))
			}
		}
		return n
	}
	s := print.SpecJSON{Name: f.name, Queue: text("queue"), Cron: text("cron"), Zone: text("zone"),
		Jitter: text("jitter"), CatchUp: text("catch_up"), Within: text("within"), Overlap: text("overlap"),
		Priority: number("priority"), MaxAttempts: number("max_attempts"), MaxRuntime: text("max_runtime"),
		Version: text("version"), Requires: strings.Fields(given.Get("requires")), Group: text("group"),
		Backoff: text("backoff")}
	if every, ok := strings.CutPrefix(s.Cron, everyWord); ok {
		s.Cron, s.Every, s.Zone = "", strings.TrimSpace(every), ""
	} else if s.Zone == "" {
		bad("zone", fault.Usagef("say in which zone, such as Europe/Berlin or UTC"))
	}
	var err error
	s.Tags, err = joblines.Tags("tags", strings.FieldsFunc(given.Get("tags"), func(c rune) bool {
		return c == '\n' || c == '\r'
	}))
	bad("tags", err)
	if f.to, err = s.Spec(); err != nil {
		in, _ := wire.InputOf(err)
		return append(wrong, in)
	}
	if f.to.Form, f.to.Payload = f.at.Spec.Form, f.at.Spec.Payload; !f.hasTags() {
		f.to.Tags = f.at.Spec.Tags
	}
	if f.hasPayload() {
		f.to.Payload = strings.ReplaceAll(given.Get("payload"), "\r\n", "\n") // as it was typed
	}
	if f.to.Form != "" && f.to.Queue != f.at.Spec.Queue {
		bad("queue", fault.Usagef("the command of the schedule stays in its queue"))
	}
	f.to = schedule.Complete(f.to)
	if err := schedule.Check(f.to); err != nil && len(wrong) == 0 {
		in, _ := wire.InputOf(err)
		if in.Field == "every" {
			in.Field = "cron"
		}
		wrong = append(wrong, in)
	}
	return wrong
}

// from is the moment from which a new period counts; zero: it is none.
func (f *scheduleForm) from() time.Time {
	if f.to.Every == 0 {
		return time.Time{}
	}
	return f.now.UTC().Truncate(time.Second)
}

func (f *scheduleForm) Would() string { return f.text(f.to) }

func (f *scheduleForm) Effects() (all []string) {
	now := f.now
	if !f.isNew {
		before := f.at.Spec
		if f.to.From = f.from(); f.to.Every == before.Every {
			f.to.From = before.From
		}
		all = differences(before, f.to)
		if !f.hasPayload() {
			all = slices.DeleteFunc(all, func(s string) bool { return strings.HasPrefix(s, "payload: ") })
		}
		if len(all) == 0 {
			return []string{"It is so already: nothing would change."}
		}
	}
	if f.to.From.IsZero() {
		f.to.From = f.from()
	}
	ticks, err := print.Preview(f.to, now.Add(time.Nanosecond), upcomingShown)
	if err != nil {
		return append(all, err.Error())
	}
	zone := print.ScheduleZone(f.to, now.Location())
	for _, t := range ticks {
		shown := momentOf(t, now)
		line := "Next tick: " + shown.Text + ", in " + shown.In
		if there := t.In(zone); there.Format("15:04") != t.In(now.Location()).Format("15:04") {
			line += fmt.Sprintf(" (%s in %s)", there.Format("15:04"), f.to.Zone)
		}
		all = append(all, line)
	}
	if len(ticks) == 0 {
		all = append(all, "It never ticks.")
	}
	if moved := print.MovedText(f.to, now); moved != "" {
		all = append(all, moved)
	}
	if f.at.Paused {
		all = append(all, "It stays paused: it does not tick until it is resumed.")
	}
	return append(all, "No job is enqueued now.")
}

func (f *scheduleForm) Set(ctx context.Context, reason string, seen int64) (to string, err error) {
	change, pos, err := f.acts.SetSchedule(ctx, f.to, reason, []int64{seen})
	if err != nil || change.Done == schedule.Unchanged {
		return "/schedules/" + url.PathEscape(f.name), err
	}
	return fmt.Sprintf("/acts/%d?to=pos:%d", pos, pos), nil
}

func (f *scheduleForm) Command(url.Values) (line, args []string) {
	if !f.hasPayload() || f.to.Payload == "-" {
		return nil, nil // it would need the payload; - is what comes on standard input
	}
	s := print.NewScheduleJSON(schedules.Schedule{Spec: f.to}, "").SpecJSON
	text, _ := json.Marshal(s) // it was made just now
	var fields map[string]any
	_ = json.Unmarshal(text, &fields)
	line, args = []string{"schedule", "set"}, []string{f.name}
	for _, name := range []string{"queue", "cron", "zone", "every", "jitter", "catch_up", "within", "overlap",
		"priority", "max_attempts", "max_runtime", "version", "group", "backoff"} {
		if value, ok := fields[name]; ok {
			line = append(line, "--"+fault.FlagOf(name)+"="+fmt.Sprint(value))
		}
	}
	for _, label := range s.Requires {
		line = append(line, "--requires="+label)
	}
	for _, pair := range words.TagPairs(s.Tags) {
		line = append(line, "--tag="+pair)
	}
	if f.to.Payload != "" {
		args = append(args, f.to.Payload)
	}
	return line, args
}
