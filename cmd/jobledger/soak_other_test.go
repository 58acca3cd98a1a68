//go:build !linux

package main

// soakJob is a job's command in the soak, which is for Linux: it looks into /proc.
func soakJob() {}
