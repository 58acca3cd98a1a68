-- A schedule may say the group and the backoff of its jobs: fields of schedule_set. An older program would take such
-- an event for damaged. No table changes.
UPDATE compatibility SET readable_from = 28, writable_from = 28;
