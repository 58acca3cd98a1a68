//go:build !linux

package main

// soakJob is the command of a job of the soak, which needs /proc of Linux.
func soakJob() {}
