package queues

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/web/act"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/commands"
	"jobledger/commands/remote/wire"
	"jobledger/ledger"
	"jobledger/ledger/event"
)

// settingView is the data of a form for a setting of a queue.
type settingView struct {
	frame.Frame
	Queue, Group string
	Back, Action string // the addresses of the queue and of the form
	Is           string // what is set now, in words
	By           string // who set it; "": it never was
	Fields       []fieldView
	Seen         int64    // the position of the event that set it; 0: there is none
	Would        string   // what would be set, in words; "": nothing was tried yet
	Effects      []string // what that would do
	Wrong        string   // what is wrong with the form as a whole; ""
	Same         string   // the command line that does the same
}

// fieldView is a field of a form.
type fieldView struct {
	Name, Label, Value, Hint string
	Wrong                    string // why the value is refused; ""
	Long, Needed             bool
}

// setting is what a form sets.
type setting interface {
	// kind is the kind of the event that sets it.
	kind() event.Kind
	// load reads the setting of a queue or of one of its groups, and what is going on there.
	load(ctx context.Context, tx *ledger.Tx, now time.Time) error
	// is says what is set, and who set it.
	is(zone *time.Location) (text, by string)
	// fields are the fields of the form, filled with the current setting.
	fields() []fieldView
	// read reads what was typed, and returns what is wrong with it.
	read(given url.Values) []wire.InputError
	// would says what read has read in words.
	would() string
	// effects say what that would do.
	effects() []string
	// set sets it.
	set(ctx context.Context, s act.Setting) error
	// command is the command line that does the same.
	command(given url.Values) []string
}

// settingPage shows the form of s, says what it would do, or does it.
func (p *Pages) settingPage(w http.ResponseWriter, r *http.Request, title, group string, s setting) error {
	queue := r.PathValue("queue")
	if err := commands.CheckQueue(queue); err != nil {
		return err
	}
	given, err := frame.Form(r)
	if err != nil {
		return err
	}
	shown := settingView{Queue: queue, Group: group, Back: pathOf(queue)}
	err = p.Store.Read(r.Context(), func(tx *ledger.Tx) error {
		if shown.Frame, err = p.FrameAt(r, url.Values{}, tx, frame.Moment{}, title+" "+queue); err != nil {
			return err
		}
		last, err := act.SetAt(r.Context(), tx, s.kind(), queue, 0)
		if err != nil {
			return err
		}
		shown.Seen = last.Pos
		return s.load(r.Context(), tx, p.Now())
	})
	if err != nil {
		return err
	}
	shown.Link, shown.Timeless, shown.Action = "", true, r.URL.Path
	if group != "" {
		shown.Action += "?" + url.Values{"group": {group}}.Encode()
	}
	shown.Is, shown.By = s.is(p.Now().Location())
	shown.Fields = append(s.fields(), fieldView{Name: "reason", Label: "Reason", Long: true, Needed: true})
	if r.Method != http.MethodPost {
		return p.Render(w, "setting", shown)
	}
	wrong := s.read(given)
	seen, err := strconv.ParseInt(given.Get("seen"), 10, 64)
	if err != nil || seen < 0 {
		return door.Refusal(http.StatusBadRequest, "usage", "the form does not say what it was made of")
	}
	setting := act.Setting{Queue: queue, Group: group, Reason: strings.TrimSpace(given.Get("reason")),
		Seen: []int64{seen}}
	sure := given.Get("do") == "set"
	if sure && setting.Reason == "" {
		wrong = append(wrong, wire.InputError{Field: "reason", Detail: frame.ErrReason.Detail})
	}
	status := http.StatusOK
	if len(wrong) == 0 && sure && given.Get("would") == s.would() {
		err := s.set(r.Context(), setting)
		if err == nil {
			p.Door.SeeOther(w, r, shown.Back)
			return nil
		}
		problem := p.Door.ProblemOf(err)
		status = problem.Status
		if problem.Field != "" {
			wrong = append(wrong, wire.InputError{Field: problem.Field, Detail: problem.Detail})
		} else {
			shown.Wrong = problem.Detail
		}
	}
	shown.fill(given, wrong)
	if len(wrong) > 0 {
		status = max(status, http.StatusBadRequest)
	} else {
		shown.Would, shown.Effects = s.would(), s.effects()
		shown.Same = frame.CommandOf(append(s.command(given), "--reason="+given.Get("reason")))
	}
	if status != http.StatusOK {
		w.WriteHeader(status)
	}
	return p.Render(w, "setting", shown)
}

// fill puts what was typed into the fields, and the errors next to them.
func (v *settingView) fill(given url.Values, wrong []wire.InputError) {
	for i := range v.Fields {
		f := &v.Fields[i]
		f.Value = given.Get(f.Name)
		for _, one := range wrong {
			if one.Field == f.Name {
				f.Wrong = one.Detail
			}
		}
	}
	for _, one := range wrong {
		if !v.has(one.Field) {
			v.Wrong = one.Detail
		}
	}
}

func (v *settingView) has(name string) bool {
	for _, f := range v.Fields {
		if f.Name == name {
			return true
		}
	}
	return false
}

// groupOf is the group that a form sets; "": it sets the queue.
func groupOf(r *http.Request) (string, error) {
	query, err := api.QueryOf(r)
	return query.Get("group"), err
}
