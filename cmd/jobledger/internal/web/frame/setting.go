package frame

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/commands/remote/wire"
	"jobledger/ledger"
)

// Setting is what a form sets that names everything, and says what it would do before it does it.
type Setting interface {
	// Load reads what is set, and what is going on there. It returns the position of the event that set it; 0:
	// none has.
	Load(ctx context.Context, tx *ledger.Tx, now time.Time) (seen int64, err error)
	// Is says what is set, and who set it; "": it never was.
	Is(zone *time.Location) (text, by string)
	// Fields are the fields of the form, filled with what is set.
	Fields() []Field
	// Read reads what was typed, and returns what is wrong with it.
	Read(given url.Values) []wire.InputError
	// Would says what Read has read in words.
	Would() string
	// Effects say what that would do.
	Effects() []string
	// Set sets it for the reason, if the event that set it last is at seen, and returns where that is seen.
	Set(ctx context.Context, reason string, seen int64) (to string, err error)
	// Command is the command line that does the same: the verb with its flags, and the arguments. Without words
	// there is none.
	Command(given url.Values) (words, args []string)
}

// Field is a field of such a form.
type Field struct {
	Name, Label, Value, Hint string
	Wrong                    string   // why the value is refused; ""
	Choices                  []string // it is one of these; nil: any text
	Long, Lines, Needed      bool
}

// settingView is the data of the form.
type settingView struct {
	Frame
	Group        string
	Back, Action string // the addresses of what is set and of the form
	Is           string // what is set now, in words
	By           string // who set it; "": it never was
	Fields       []Field
	Seen         int64    // the position of the event that set it; 0: there is none
	Would        string   // what would be set, in words; "": nothing was tried yet
	Effects      []string // what that would do
	Wrong        string   // what is wrong with the form as a whole; ""
	Same         string   // the command line that does the same
}

// SettingPage shows the form of s, says what it would do, or does it. group is the group of a queue that it
// is about; "": none. back is the address to which the reader returns who changes nothing.
func (p *Site) SettingPage(w http.ResponseWriter, r *http.Request, title, group, back string,
	s Setting) error {
	given, err := Form(r)
	if err != nil {
		return err
	}
	shown := settingView{Group: group, Back: back}
	err = p.Store.Read(r.Context(), func(tx *ledger.Tx) error {
		if shown.Frame, err = p.FrameAt(r, url.Values{}, tx, Moment{}, title); err != nil {
			return err
		}
		shown.Seen, err = s.Load(r.Context(), tx, p.Now())
		return err
	})
	if err != nil {
		return err
	}
	shown.Link, shown.Timeless, shown.Action = "", true, r.URL.Path
	if group != "" {
		shown.Action += "?" + url.Values{"group": {group}}.Encode()
	}
	shown.Is, shown.By = s.Is(p.Now().Location())
	shown.Fields = append(s.Fields(), Field{Name: "reason", Label: "Reason", Long: true, Needed: true})
	if r.Method != http.MethodPost {
		return p.Render(w, "setting", shown)
	}
	wrong := s.Read(given)
	seen, err := strconv.ParseInt(given.Get("seen"), 10, 64)
	if err != nil || seen < 0 {
		return door.Refusal(http.StatusBadRequest, "usage", "the form does not say what it was made of")
	}
	reason := strings.TrimSpace(given.Get("reason"))
	sure := given.Get("do") == "set"
	if sure && reason == "" {
		wrong = append(wrong, wire.InputError{Field: "reason", Detail: ErrReason.Detail})
	}
	status := http.StatusOK
	if len(wrong) == 0 && sure && given.Get("would") == s.Would() {
		to, err := s.Set(r.Context(), reason, seen)
		if err == nil {
			p.Door.SeeOther(w, r, to)
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
		shown.Would, shown.Effects = s.Would(), s.Effects()
		if line, args := s.Command(given); line != nil {
			shown.Same = CommandOf(append(line, "--reason="+given.Get("reason")), args...)
		}
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
		f.Value = strings.ReplaceAll(given.Get(f.Name), "\r\n", "\n") // as browsers send lines
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
