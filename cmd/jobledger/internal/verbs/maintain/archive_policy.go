package maintain

import (
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/when"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// policyForms is a hint at what a policy may be.
const policyForms = "a policy is 'older-than 90d', 'older-than 90d, keep-failed 365d, logs remove, " +
	"bodies keep' or off"

// parsePolicy reads a policy as people write it.
func parsePolicy(text string) (b event.ArchivePolicy, err error) {
	if strings.TrimSpace(text) == "off" {
		return b, nil
	}
	refuse := func() (event.ArchivePolicy, error) {
		return b, cli.WithHint(cli.Usagef("--policy: %q is not a policy", words.Shorten(text)), policyForms)
	}
	for _, part := range strings.Split(text, ",") {
		texts := strings.Fields(part)
		if len(texts) != 2 {
			return refuse()
		}
		if texts[0] == "logs" && (texts[1] == "remove" || texts[1] == "keep") {
			b.RemoveLogs = texts[1] == "remove"
			continue
		}
		if texts[0] == "bodies" && (texts[1] == "keep" || texts[1] == "drop") {
			b.KeepBodies = texts[1] == "keep"
			continue
		}
		d, err := when.ParseDuration(texts[1])
		if err != nil || d <= 0 || d > event.MaxArchiveAge {
			return refuse()
		}
		switch texts[0] {
		case "older-than":
			b.OlderThan = d
		case "keep-failed":
			b.KeepFailed = d
		default:
			return refuse()
		}
	}
	if b.OlderThan == 0 {
		return refuse()
	}
	return b, nil
}

// setArchivePolicy records the policy that --policy says.
func (p *Verbs) setArchivePolicy(c *cli.Context) error {
	b, err := parsePolicy(c.String("policy"))
	if err != nil {
		return err
	}
	b.Reason = c.String("reason")
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	changed, err := archive.SetPolicy(c.Context, service, p.Actor, b)
	if err != nil {
		return err
	}
	if !changed {
		p.Message("that is the policy already")
	}
	return p.printPolicy(b)
}

// showArchivePolicy prints the policy that is in force.
func (p *Verbs) showArchivePolicy(c *cli.Context) error {
	var b event.ArchivePolicy
	err := p.Read(c.Context, func(tx *ledger.Tx) (err error) {
		b, err = projection.ArchivePolicy(c.Context, tx)
		return err
	})
	if err != nil {
		return err
	}
	return p.printPolicy(b)
}

func (p *Verbs) printPolicy(b event.ArchivePolicy) error {
	if p.JSON {
		return p.PrintJSON(struct {
			OlderThan  *float64 `json:"older_than"`
			KeepFailed *float64 `json:"keep_failed"`
			RemoveLogs bool     `json:"remove_logs"`
			KeepBodies bool     `json:"keep_bodies"`
		}{words.OrNull(b.OlderThan.Seconds()), words.OrNull(b.KeepFailed.Seconds()), b.RemoveLogs, b.KeepBodies})
	}
	return p.PrintLine(words.PolicyText(&b))
}
