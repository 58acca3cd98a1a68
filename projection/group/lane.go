package group

import "strings"

// The lane of a grouped job is that of an ungrouped one with a # for the first space, then a tab and the
// group. A # sorts after the bound of the lanes of a queue, so that a search of those meets no groups;
// neither may be in the name of a queue, and a tab in no part of a lane.

// Text returns the lane of a group's jobs, whose lane would be plain without the group.
func Text(plain, name string) string { return Base(plain) + "\t" + name }

// Base returns the part of Text before the tab.
func Base(plain string) string { return strings.Replace(plain, " ", "#", 1) }

// Split returns the base and the group of a lane; ok is false if it is that of ungrouped jobs.
func Split(lane string) (base, name string, ok bool) { return strings.Cut(lane, "\t") }

// Plain returns the lane that base was made of.
func Plain(base string) string { return strings.Replace(base, "#", " ", 1) }

// QueueOf returns the queue of a base.
func QueueOf(base string) string {
	queue, _, _ := strings.Cut(base, "#")
	return queue
}

// Bounds returns the range of the bases of a queue: from, inclusive, and before, exclusive.
func Bounds(queue string) (from, before string) { return queue + "#", queue + "$" }
