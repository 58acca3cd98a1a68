package child

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Find returns the file of a program as a shell in dir finds it: a name with a / is a path, and others
// are searched in path, whose entries are from the root. exit is what a shell exits with if there is none.
func Find(name, dir, path string) (file string, exit int, err error) {
	places := filepath.SplitList(path)
	if strings.Contains(name, "/") {
		places = []string{""}
		if !filepath.IsAbs(name) {
			places = []string{dir}
		}
	}
	exit, err = 127, fmt.Errorf("%s: there is no such program in %s", name, path)
	for _, place := range places {
		if place != "" && !filepath.IsAbs(place) || place == "" && !filepath.IsAbs(name) {
			continue
		}
		at := filepath.Join(place, name)
		info, statErr := os.Stat(at)
		switch {
		case statErr == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0:
			return at, 0, nil
		case statErr == nil:
			exit, err = 126, fmt.Errorf("%s cannot be run: its mode is %s", at, info.Mode())
		case strings.Contains(name, "/"):
			err = statErr
		}
	}
	return "", exit, err
}
