
-- Returns a record with the requests beside it, after one more was left.
-- KEYS[1] the record, KEYS[2] the requests beside it.
-- ARGV[1] the most requests, ARGV[2] their lifetime in ms.
-- ARGV[3] name of the request to leave, ARGV[4] its value; both are missing if there is none.
return load(KEYS[1], leave(KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4]))
