package projection

import (
	"fmt"
	"slices"

	"jobledger/ledger/event"
)

// Fits reports whether a worker of this version and with these capabilities may take j, and if not, why not.
func Fits(j Job, version string, capabilities []string) (bool, string) {
	if j.Version != "" && j.Version != version {
		return false, fmt.Sprintf("it asks for version %q", j.Version)
	}
	if slices.Contains(capabilities, event.LabelArgv) && !slices.Contains(j.Requires, event.LabelArgv) {
		return false, "it carries no command"
	}
	if run := event.RunOf(capabilities); run != "" && event.RunOf(j.Requires) != run {
		return false, "the worker takes only the jobs of its own run"
	}
	for _, label := range j.Requires {
		if !slices.Contains(capabilities, label) {
			return false, fmt.Sprintf("it requires the capability %q", label)
		}
	}
	return true, ""
}
