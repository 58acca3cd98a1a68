package main

import "context"

// verbs are all commands, in the order of the help.
func (p *program) verbs() []verb {
	return []verb{
		demoVerb(p),
		workVerb(p),
		initVerb(p),
		migrateVerb(p),
		enqueueVerb(p),
		claimVerb(p),
		heartbeatVerb(p),
		succeedVerb(p),
		failVerb(p),
		releaseVerb(p),
		execVerb(p),
		cancelVerb(p),
		retryVerb(p),
		rescheduleVerb(p),
		pauseVerb(p),
		resumeVerb(p),
		sweepVerb(p),
		statusVerb(p),
		listVerb(p),
		showVerb(p),
		whyVerb(p),
		logsVerb(p),
		workersVerb(p),
		waitVerb(p),
		historyVerb(p),
		attemptsVerb(p),
		eventsVerb(p),
		ownerVerb(p),
		diffVerb(p),
		verifyVerb(p),
		rebuildVerb(p),
		incidentVerb(p),
		replayVerb(p),
		exportVerb(p),
		importVerb(p),
		eraseVerb(p),
		backupVerb(p),
		restoreVerb(p),
		doctorVerb(p),
		benchVerb(p),
		versionVerb(p),
		completionVerb(p),
		manVerb(p),
		helpVerb(p),
	}
}

// run runs the verb that typed names (the words after the program's name) and returns the exit code.
func (p *program) run(ctx context.Context, typed []string) int {
	return p.tellShell(typed, p.Run(ctx, typed, p.verbs()))
}
