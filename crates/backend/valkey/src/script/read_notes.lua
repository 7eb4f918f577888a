
-- Returns the notes beside a record: a name, its note, the next name.
-- KEYS[1] the notes, ARGV[1] the lifetime of a note in ms.
local live = read_notes(KEYS[1], ARGV[1])
return live
