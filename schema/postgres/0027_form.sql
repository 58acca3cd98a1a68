-- A job may carry its command: the field form of enqueued and schedule_set, and commands of queue_defaults. An older
-- program would take such an event for damaged, and must not claim such a job. No table changes.
UPDATE compatibility SET readable_from = 27, writable_from = 27;
