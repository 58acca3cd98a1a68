package event

// The JSON fields of each body, in the order in which they are written.

func (b *Enqueued) fields(f *fields) {
	f.text("queue", &b.Queue)
	f.int("priority", &b.Priority)
	f.time("run_at", &b.RunAt)
	f.int("max_attempts", &b.MaxAttempts)
	f.duration("max_runtime", &b.MaxRuntime)
	f.text("version", &b.Version)
	f.list("requires", &b.Requires)
	f.text("key", &b.Key)
	f.dict("tags", &b.Tags)
	f.sha256("payload_sha256", &b.PayloadSHA256)
	f.int64("payload_bytes", &b.PayloadBytes)
	f.sparse = true
	f.text("schedule", &b.Schedule)
	f.timeText("tick", &b.Tick)
	f.timeText("next", &b.Next)
	f.text("group", &b.Group)
	b.Backoff.fields(f)
	f.list("after", &b.After)
	f.list("before", &b.Before)
	f.flag("hold", &b.Hold)
	f.flag("blocked", &b.Blocked)
	f.text("unique_while", &b.UniqueWhile)
	f.text("form", &b.Form)
}

func (b *Claimed) fields(f *fields) {
	f.time("lease_until", &b.LeaseUntil)
	f.duration("max_runtime", &b.MaxRuntime)
	f.sparse = true
	f.flag("limited", &b.Limited)
}

func (b *Heartbeat) fields(f *fields) {
	f.time("lease_until", &b.LeaseUntil)
	f.number("progress", &b.Progress)
	f.text("note", &b.Note)
	f.sparse = true
	f.text("cannot_end", &b.CannotEnd)
}

func (b *Succeeded) fields(f *fields) {
	f.sha256("result_sha256", &b.ResultSHA256)
	f.int64("result_bytes", &b.ResultBytes)
	f.code("exit_code", &b.ExitCode)
	b.Output.fields(f)
	b.Cost.fields(f)
	f.flag("after_max_runtime", &b.AfterMaxRuntime)
}

func (b *Failed) fields(f *fields) {
	f.text("error_code", &b.ErrorCode)
	f.text("error_detail", &b.ErrorDetail)
	f.code("exit_code", &b.ExitCode)
	f.text("signal", &b.Signal)
	f.time("retry_at", &b.RetryAt)
	b.Output.fields(f)
	b.Cost.fields(f)
}

func (b *Released) fields(f *fields) {
	f.text("reason", &b.Reason)
	f.time("run_at", &b.RunAt)
	f.flag("snooze", &b.Snooze)
	b.Output.fields(f)
	f.code("exit_code", &b.ExitCode)
	b.Cost.fields(f)
}

func (o *Output) fields(f *fields) {
	f.text("stdout_sha256", &o.StdoutSHA256)
	f.int64("stdout_bytes", &o.StdoutBytes)
	f.text("stderr_sha256", &o.StderrSHA256)
	f.int64("stderr_bytes", &o.StderrBytes)
	f.sparse = true
	f.text("stdout_kept_sha256", &o.StdoutKeptSHA256)
	f.text("stderr_kept_sha256", &o.StderrKeptSHA256)
}

func (c *Cost) fields(f *fields) {
	f.sparse = true
	f.duration("cpu_user", &c.CPUUser)
	f.duration("cpu_system", &c.CPUSystem)
	f.int64("max_rss", &c.MaxRSS)
}

func (b *Reclaimed) fields(f *fields) {
	f.text("reason", &b.Reason)
	f.time("last_heartbeat", &b.LastHeartbeat)
	f.time("lease_until", &b.LeaseUntil)
	f.time("retry_at", &b.RetryAt)
	f.sparse = true
	f.text("still_running", &b.StillRunning)
}

func (b *Cancelled) fields(f *fields) {
	f.text("reason", &b.Reason)
	f.sparse = true
	f.text("because", (*string)(&b.Because))
}

func (b *Retried) fields(f *fields) {
	f.text("reason", &b.Reason)
	f.sparse = true
	f.time("run_at", &b.RunAt)
	f.text("because", (*string)(&b.Because))
	f.flag("alone", &b.Alone)
	f.flag("key_taken", &b.KeyTaken)
	f.duration("max_runtime", &b.MaxRuntime)
}

func (b *Unblocked) fields(f *fields) {
	f.sparse = true
	f.text("because", (*string)(&b.Because))
	f.flag("hold", &b.Hold)
	f.flag("blocked", &b.Blocked)
	f.text("reason", &b.Reason)
}

func (b *Rescheduled) fields(f *fields) {
	f.time("run_at", &b.RunAt)
	f.int("priority", &b.Priority)
	f.text("reason", &b.Reason)
}

func (b *Refused) fields(f *fields) {
	f.text("command", &b.Command)
	f.text("why", &b.Why)
	f.sha256("offered_sha256", &b.OfferedSHA256)
	f.int64("offered_bytes", &b.OfferedBytes)
}

func (b *Erased) fields(f *fields) {
	f.int("bodies", &b.Bodies)
	f.int64("bytes", &b.Bytes)
	f.text("reason", &b.Reason)
}

func (b *QueuePaused) fields(f *fields) {
	f.text("queue", &b.Queue)
	f.text("reason", &b.Reason)
}

func (b *QueueResumed) fields(f *fields) {
	f.text("queue", &b.Queue)
	f.text("reason", &b.Reason)
}

func (b *QueueLimited) fields(f *fields) {
	f.text("queue", &b.Queue)
	f.sparse = true
	f.text("group", &b.Group)
	f.int("running", &b.Running)
	f.int("per_group", &b.PerGroup)
	f.int("rate", &b.Rate)
	f.duration("rate_per", &b.RatePer)
	f.int("burst", &b.Burst)
	f.int("group_rate", &b.GroupRate)
	f.duration("group_rate_per", &b.GroupRatePer)
	f.int("group_burst", &b.GroupBurst)
	f.duration("ageing", &b.Ageing)
	f.text("reason", &b.Reason)
}

func (b *WorkerStarted) fields(f *fields) {
	f.list("queues", &b.Queues)
	f.list("capabilities", &b.Capabilities)
}

func (b *WorkerStopped) fields(*fields) {}

func (b *Rebuilt) fields(f *fields) {
	f.int64("jobs", &b.Jobs)
	f.int64("changed", &b.Changed)
	f.int64("missing", &b.Missing)
	f.int64("extra", &b.Extra)
}

func (b *Restored) fields(f *fields) {
	f.text("from", &b.From)
	f.int64("events", &b.Events)
	f.code("lost", &b.Lost)
	f.sparse = true
	f.int64("head_size", &b.HeadSize)
	f.text("head_root", &b.HeadRoot)
}

func (b *Imported) fields(f *fields) {
	f.text("from", &b.From)
	f.int64("events", &b.Events)
	f.int64("missing_bodies", &b.MissingBodies)
	f.sparse = true
	f.timeText("as_of", &b.AsOf)
}

func (b *Sealing) fields(f *fields) {
	f.text("origin", &b.Origin)
	f.text("key", &b.Key)
	f.text("reason", &b.Reason)
	f.sparse = true
	f.flag("sealed", &b.Sealed)
}

func (b *Stopped) fields(f *fields) {
	f.sparse = true
	f.code("exit_code", &b.ExitCode)
	f.text("signal", &b.Signal)
	f.text("why", &b.Why)
	b.Cost.fields(f)
}

func (b *Survived) fields(f *fields) {
	f.text("cannot_end", &b.CannotEnd)
	f.time("lease_until", &b.LeaseUntil)
}

func (b *TakenOver) fields(f *fields) { f.time("lease_until", &b.LeaseUntil) }
