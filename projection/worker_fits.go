package projection

import (
	"fmt"
	"slices"
)

// Fits reports whether a worker of this version and with these capabilities may take j, and if not, why not.
func Fits(j Job, version string, capabilities []string) (bool, string) {
	if j.Version != "" && j.Version != version {
		return false, fmt.Sprintf("it asks for version %q", j.Version)
	}
	for _, label := range j.Requires {
		if !slices.Contains(capabilities, label) {
			return false, fmt.Sprintf("it requires the capability %q", label)
		}
	}
	return true, ""
}
