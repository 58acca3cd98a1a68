package crontab

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// maxName is the length of the name of a schedule, less a number behind it.
const maxName = 64 - len("-10000")

// Known is a schedule that an earlier import of the same crontab made.
type Known struct{ Name, When, Command string }

// Name gives each line that has no name one: that of the schedule that an earlier import made of the same
// line, else of the same command, else that of its program, with a number where other lines, or schedules
// that are not of this crontab, have it already. So the same crontab has the same names each time, wherever
// its lines stand.
func Name(lines []Line, known []Known, others []string) {
	taken := make(map[string]bool)
	for _, name := range others {
		taken[name] = true
	}
	for _, l := range lines {
		taken[l.Name] = true
	}
	find := func(fits func(Line, Known) bool) {
		for i := range lines {
			for _, k := range known {
				if lines[i].Name == "" && !taken[k.Name] && fits(lines[i], k) {
					lines[i].Name = k.Name
					taken[k.Name] = true
				}
			}
		}
	}
	find(func(l Line, k Known) bool { return l.Command == k.Command && l.When == k.When })
	find(func(l Line, k Known) bool { return l.Command == k.Command })
	for i := range lines {
		if lines[i].Name != "" || lines[i].Reboot() {
			continue
		}
		base := Program(lines[i].Command)
		name := base
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		lines[i].Name = name
		taken[name] = true
	}
}

var (
	// before are words after which comes the command that matters.
	before = strings.Fields("exec nohup setsid chronic time command env then do")

	// asides are commands that only prepare the one that matters.
	asides = strings.Fields("cd test [ [[ true : export set umask sleep if while . source ulimit")

	interpreters = strings.Fields("sh bash dash zsh ksh python python3 perl ruby php node")
	extensions   = strings.Fields(".sh .bash .py .pl .rb .php .js")
)

// Program returns a name for a command of a shell: that of the program that matters in it, in the letters
// that a schedule's name may have.
func Program(command string) string {
	first := ""
	for part := range parts(command) {
		words := strings.Fields(part)
		for len(words) > 0 && (slices.Contains(before, words[0]) || isAssignment(words[0])) {
			words = words[1:]
		}
		if len(words) == 0 {
			continue
		}
		if len(words) > 1 && slices.Contains(interpreters, path.Base(words[0])) && words[1][0] != '-' {
			words = words[1:]
		}
		if first == "" {
			first = words[0]
		}
		if !slices.Contains(asides, words[0]) {
			first = words[0]
			break
		}
	}
	name := path.Base(strings.Trim(first, `"'`))
	for _, end := range extensions {
		name = strings.TrimSuffix(name, end)
	}
	name = strings.Trim(strings.Map(nameByte, strings.ToLower(name)), ".-_")
	if name == "" {
		return "line"
	}
	return strings.TrimRight(name[:min(len(name), maxName)], ".-_")
}

// parts yields the simple commands that a line of a shell has, as far as its signs say.
func parts(command string) func(yield func(string) bool) {
	return strings.FieldsFuncSeq(command, func(r rune) bool { return strings.ContainsRune("&|;(){}\n", r) })
}

// isAssignment reports whether a word sets a variable.
func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && assignment.FindString(name+"=x") == name+"=x"
}

// nameByte is r where a name may have it, else a hyphen.
func nameByte(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '_' {
		return r
	}
	return '-'
}
