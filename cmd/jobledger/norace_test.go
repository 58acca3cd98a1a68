//go:build !race

package main

// underRace reports that the race detector is on: everything takes longer and much more memory.
const underRace = false
