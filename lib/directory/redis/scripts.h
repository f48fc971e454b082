// The directory's steps as Lua scripts: the server runs each as one atomic step. docs/directory.md
// draws the keys.
//
// ARGV[1] is the prefix of all keys, in a Redis Cluster a hash tag: all keys are in one slot.
// Numbers are text (Lua's are not exact beyond 2^53); incarnations have leading zeros. A life is
// "EPOCH:NODE". Bounds (most_...) are set in front. Needs Redis 5 or later.
#pragma once

namespace tokamak::directory::redis {

// Shared by all scripts.
constexpr char kCommon[] = R"lua(
local prefix = ARGV[1]
local function Key(...) return prefix .. ':' .. table.concat({...}, ':') end

-- Others may write to the server, too. Where they have put something of another kind under one of our
-- keys, whoever reads the error is told which it is.
local function IsOfAnotherKind(err) return string.find(tostring(err), 'WRONGTYPE', 1, true) end
local function call(...)
  local result = redis.pcall(...)
  if type(result) ~= 'table' or not result.err then return result end
  if not IsOfAnotherKind(result.err) then error(result.err) end
  error('WRONGTYPE: ' .. tostring(select(2, ...)) .. ' is not what we write there')
end

-- A text of ours; what is of another kind counts as nothing, and the next that is written replaces it.
local function Get(key)
  local result = redis.pcall('GET', key)
  if type(result) ~= 'table' or not result.err then return result end
  if not IsOfAnotherKind(result.err) then error(result.err) end
  return false
end

-- What a function says of something, or nothing where a key of it is of another kind.
local function IfOurs(say, ...)
  local is_fine, said = pcall(say, ...)
  if is_fine then return said end
  if not IsOfAnotherKind(said) then error(said, 0) end
end

-- The parts of "HEX:GENERATION"; nothing where somebody else has written it.
local function Version(text)
  local hex, g = string.match(text, '^(%x+):(%x+)$')
  if hex and #hex == 40 and #g == 16 then return hex, g end
end

-- Microseconds since 1970, as text.
local function Now()
  local time = call('TIME')
  return time[1] .. string.format('%06d', tonumber(time[2]))
end

-- Which reign of which server this is: another process, and a replica that became the master, may
-- lack what was accepted last.
local run
local function Run()
  if not run then
    local process = string.match(call('INFO', 'server'), 'run_id:(%x+)')
    local reign = string.match(call('INFO', 'replication'), 'master_replid:(%x+)')
    run = string.sub(process, 1, 16) .. string.sub(reign, 1, 16)
  end
  return run
end

-- A server that is out of memory refuses a script whose first write may need some.
local function GoOnWithoutMemory() call('DEL', Key('nothing')) end

-- 'alive', 'silent' or 'gone'.
local states = {}
local function StateOf(life)
  local state = states[life]
  if not state then
    local epoch, node = string.match(life, '^(%d+):(.+)$')
    if call('HGET', Key('node', node), 'epoch') == epoch then
      state = Get(Key('alive', node)) == epoch and 'alive' or 'silent'
    else
      state = call('EXISTS', Key('former', life)) == 1 and 'silent' or 'gone'
    end
    states[life] = state
  end
  return state
end

-- The life of a node that has a lease.
local function LifeOf(node)
  local epoch = call('HGET', Key('node', node), 'epoch')
  if epoch and Get(Key('alive', node)) == epoch then return epoch .. ':' .. node end
end

-- An object's own fields, and its lives, among them such as are gone: {life, 'has' | 'coming'}...
local function Read(object)
  local known, lives = {}, {}
  local fields = call('HGETALL', object)
  for i = 1, #fields, 2 do
    if string.find(fields[i], ':', 1, true) then
      table.insert(lives, {fields[i], fields[i + 1]})
    else
      known[fields[i]] = fields[i + 1]
    end
  end
  return known, lives
end

-- Whether a hash has a field of which this is true. Looks at no more of them than it takes.
local function AnyField(hash, is_so)
  local cursor = '0'
  repeat
    local page = call('HSCAN', hash, cursor, 'COUNT', 16)
    cursor = page[1]
    for i = 1, #page[2], 2 do
      if is_so(page[2][i]) then return true end
    end
  until cursor == '0'
  return false
end

local function MayHold(field) return string.find(field, ':', 1, true) and StateOf(field) ~= 'gone' end

-- What is known of the live object; nothing where nobody may hold it.
local function Live(hex)
  local object = Key('object', hex)
  local known = call('HMGET', object, 'g', 'd', 'm', 'f', 'p')
  if not known[1] then return nil end
  if AnyField(object, MayHold) then return {g = known[1], d = known[2], m = known[3], f = known[4], p = known[5]} end
  call('DEL', object)
end

-- The life neither has the object nor is coming. Without lives the object is forgotten.
local function TakeOut(hex, life)
  local object = Key('object', hex)
  call('SREM', Key('held', life), hex)
  if call('HDEL', object, life) == 0 or call('HLEN', object) > 7 then return end
  local function IsLife(field) return string.find(field, ':', 1, true) end
  if not AnyField(object, IsLife) then call('DEL', object) end
end

local function IsBuried(hex, g) return call('ZSCORE', Key('tombstones'), hex .. ':' .. g) end
local function Bury(hex, g)
  local tombstones = Key('tombstones')
  call('ZADD', tombstones, Now(), hex .. ':' .. g)
  local beyond = call('ZCARD', tombstones) - most_tombstones
  if beyond <= 0 then return end
  -- Whoever was not here since may have missed one that it will not be told of.
  call('SET', Key('forgotten'), call('ZRANGE', tombstones, beyond - 1, beyond - 1, 'WITHSCORES')[2])
  call('ZREMRANGEBYRANK', tombstones, 0, beyond - 1)
end

-- A mark is "REIGN.MICROSECOND". Whoever has one of another reign was not here before this one had
-- learnt who holds what. Until then nothing was deleted that an earlier reign can have accepted.
local function MayHaveForgottenOneAfter(mark)
  local forgotten = Get(Key('forgotten'))
  if not forgotten then return false end
  local reign, known = string.match(mark, '^(%x+)%.(%d+)$')
  if reign ~= Run() then known = Get(Key('learnt')) end
  return known and tonumber(forgotten) >= tonumber(known)
end

-- The node was gone while more was deleted than is remembered: the mark with which it came back is
-- kept until it has told all.
local function IsOutdated(node)
  local mark = call('HGET', Key('node', node), 'mark')
  return mark and MayHaveForgottenOneAfter(mark)
end

-- The deletions of `hex` that are under way: {generation -> {lives = {life...}, provisional =
-- ...}}. Those that nobody has to confirm any more are over.
local function Deletions(hex)
  local deleting = Key('deleting', hex)
  local under_way, gone = {}, {}
  local fields = call('HGETALL', deleting)
  for i = 1, #fields, 2 do
    local g, life = string.match(fields[i], '^(%x+):(.+)$')
    if StateOf(life) == 'gone' then
      gone[g] = true
      call('HDEL', deleting, fields[i])
      call('SREM', Key('drops', life), hex .. ':' .. g)
    else
      under_way[g] = under_way[g] or {lives = {}, provisional = fields[i + 1]}
      table.insert(under_way[g].lives, life)
    end
  end
  for g in pairs(gone) do
    if not under_way[g] then Bury(hex, g) end
  end
  return under_way
end

-- Whether what is noted in a field, the reign in which it was so, is still so. Nothing: it never was.
local function IsOfThisReign(noted) return noted and noted ~= '' and noted == Run() end

-- Why somebody may hold what the server does not know; nothing where nobody may. The server has
-- just begun: {'begun', microseconds left}. A life came back and has not told all: {'node', name}.
local function Lacks()
  if call('EXISTS', Key('recovery')) == 0 then return nil end
  local now, lacks = Now(), nil
  local waited_for = call('ZRANGEBYSCORE', Key('recovery'), now, '+inf', 'WITHSCORES')
  for i = 1, #waited_for, 2 do
    local who, until_when = waited_for[i], waited_for[i + 1]
    if who == '*begun' then return {'begun', string.format('%.0f', tonumber(until_when) - tonumber(now))} end
    if StateOf(who) ~= 'gone' then lacks = {'node', (string.match(who, '^%d+:(.+)$'))} end
  end
  return lacks
end

local function AddToDeletion(hex, g, provisional, life)
  call('HSET', Key('deleting', hex), g .. ':' .. life, provisional)
  call('SADD', Key('drops', life), hex .. ':' .. g)
end

-- What is live is live no more. Returns whether anybody has to confirm that.
local function BeginDeletion(hex)
  local object, begun = Key('object', hex), false
  local known, lives = Read(object)
  call('DEL', object)
  for _, holder in ipairs(lives) do
    local life = holder[1]
    if StateOf(life) ~= 'gone' then
      AddToDeletion(hex, known.g, known.p or '', life)
      call('SREM', Key('held', life), hex)
      begun = true
    end
  end
  return begun
end

-- The life does not hold a generation, wherever it was asked for that.
local function Confirm(hex, g, life)
  local deleting = Key('deleting', hex)
  call('SREM', Key('drops', life), hex .. ':' .. g)
  if call('HDEL', deleting, g .. ':' .. life) == 0 then return end
  local function OfThis(field) return string.match(field, '^%x+') == g end
  if not AnyField(deleting, OfThis) then Bury(hex, g) end
end
)lua";

// In front of the first write in a Redis Cluster. While the slot moves to another server, a script
// that meets an absent key ends in the middle: on this one, which never exists, it fails first.
constexpr char kInCluster[] = R"lua(
call('EXISTS', Key('nothing'))
)lua";

// `recovery_ms` is set in front.
constexpr char kMeeting[] = R"lua(
local recovery = Key('recovery')
local function EndOfRecovery() return string.format('%.0f', tonumber(Now()) + 1000 * recovery_ms) end

-- A server that we do not know: it has no memory, or that of another, of some time ago, and by the
-- other's clock. So lives count that are gone by this one's. A life that it knows may hold what the
-- other accepted later: it is waited for, however late it comes, until it has told all.
local function MeetServer()
  if Get(Key('server')) == Run() then return end
  call('SET', Key('server'), Run())
  call('DEL', recovery, Key('forgotten'))
  call('ZADD', recovery, EndOfRecovery(), '*begun')
  call('SET', Key('learnt'), EndOfRecovery())
  for _, life in ipairs(call('SMEMBERS', Key('lives'))) do
    if StateOf(life) ~= 'gone' then call('ZADD', recovery, '+inf', life) end
  end
  states = {}
end
)lua";

// -> nothing. First on each connection: what is accepted before the server is known to be new would
// not count as such.
constexpr char kMeet[] = R"lua(
GoOnWithoutMemory()
MeetServer()
)lua";

// id, incarnation, engines, device, capacity, lease in ms, lease and grace in ms, returning,
// complete, mark
//   -> {"entered" | "renewed", mark, as of, "outdated" | "", "HEX:GENERATION" to drop...} |
//      {"taken", address} | {"full"} | {"later"}: a later life is known
constexpr char kJoin[] = R"lua(
local id, incarnation, engines, device, capacity = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local lease, hold, returning, complete, mark = ARGV[7], ARGV[8], ARGV[9] == '1', ARGV[10] == '1', ARGV[11]
local node, alive = Key('node', id), Key('alive', id)
GoOnWithoutMemory()

local function EndGone(lives)
  for _, life in ipairs(lives) do
    if StateOf(life) == 'gone' then
      call('SADD', Key('ended'), life)
      call('SREM', Key('lives'), life)
      call('ZREM', recovery, life)
    end
  end
end

-- The same node, which the server enters anew, has yet to drop what it was to drop.
local function TakeOverDrops(from, to)
  for _, drop in ipairs(call('SMEMBERS', Key('drops', from))) do
    local hex, g = Version(drop)
    if hex then
      local provisional = call('HGET', Key('deleting', hex), g .. ':' .. from)
      AddToDeletion(hex, g, provisional or '', to)
      Confirm(hex, g, from)
    end
  end
end

local function Full()
  if call('SCARD', Key('lives')) < most_lives then return false end
  EndGone(call('SMEMBERS', Key('lives')))
  return call('SCARD', Key('lives')) >= most_lives
end

-- Some of what this life is to drop. What is none, somebody else has put there: it goes.
local function SomeDrops(life)
  local drops = {}
  for _, drop in ipairs(call('SRANDMEMBER', Key('drops', life), most_drops)) do
    if Version(drop) then
      table.insert(drops, drop)
    else
      call('SREM', Key('drops', life), drop)
    end
  end
  return drops
end

-- A bounded step of cleaning after lives that have ended.
local function Clean()
  EndGone(call('SRANDMEMBER', Key('lives'), most_looked_at))
  local life = call('SRANDMEMBER', Key('ended'))
  if not life then return end
  for _, hex in ipairs(call('SPOP', Key('held', life), most_cleaned)) do TakeOut(hex, life) end
  for _, drop in ipairs(call('SPOP', Key('drops', life), most_cleaned)) do
    local hex, g = Version(drop)
    if hex then Confirm(hex, g, life) end
  end
  if call('EXISTS', Key('held', life), Key('drops', life)) == 0 then call('SREM', Key('ended'), life) end
end

MeetServer()
local known = call('HMGET', node, 'incarnation', 'epoch', 'run', 'engines')
local earlier, epoch = known[1], known[2]
local was_alive = epoch and Get(alive) == epoch
if earlier and earlier > incarnation then return {'later'} end
if earlier and earlier < incarnation and was_alive and known[4] ~= engines then return {'taken', known[4]} end

local entered, epoch_before = earlier ~= incarnation or known[3] ~= Run(), epoch
if entered then
  -- Silent at other addresses it may still run, cut off: it counts until its grace is over.
  if earlier and earlier < incarnation and known[4] ~= engines then
    call('SET', Key('former', epoch .. ':' .. id), '', 'PX', math.max(1, call('PTTL', node)))
  end
  call('DEL', node)
  if Full() then return {'full'} end
  epoch = Now()
  -- The clock of a server that was a replica may be behind.
  if epoch_before and tonumber(epoch) <= tonumber(epoch_before) then
    epoch = string.format('%.0f', tonumber(epoch_before) + 1)
  end
end
local life = epoch .. ':' .. id
call('HMSET', node, 'incarnation', incarnation, 'epoch', epoch, 'run', Run(), 'engines', engines, 'device', device,
     'capacity', capacity, 'hold', hold)
call('PEXPIRE', node, hold)
call('SET', alive, epoch, 'PX', lease)
call('SADD', Key('lives'), life)
states = {}
if entered and earlier == incarnation then TakeOverDrops(epoch_before .. ':' .. id, life) end

local back = not entered and not was_alive
if returning and (entered or back) then call('ZADD', recovery, '+inf', life) end
if returning and entered then call('HSET', node, 'mark', mark) end
-- A life that was not known has told us nothing yet, whatever it has told a server before.
if complete and not entered then
  call('ZREM', recovery, life)
  call('HDEL', node, 'mark')
end
call('ZREMRANGEBYSCORE', recovery, '-inf', '(' .. Now())
if back then call('PUBLISH', Key('awake'), '') end
Clean()
-- What it has yet to tell may have been deleted before now.
local as_of = Run() .. '.' .. Now()
if not call('ZSCORE', recovery, life) then mark = as_of end
return {entered and 'entered' or 'renewed', mark, as_of, IsOutdated(id) and 'outdated' or '',
        unpack(SomeDrops(life))}
)lua";

// id, incarnation -> nothing
constexpr char kLeave[] = R"lua(
local id, incarnation = ARGV[2], ARGV[3]
local node = Key('node', id)
local known = call('HMGET', node, 'incarnation', 'epoch')
if known[1] == incarnation then
  local life = known[2] .. ':' .. id
  call('DEL', node, Key('alive', id))
  call('SREM', Key('lives'), life)
  call('SADD', Key('ended'), life)
  call('ZREM', Key('recovery'), life)
end
)lua";

// node, as of, then for each update: "announce" | "withdraw", object in hex, generation, data size,
// metadata size, standing (its number), name
//   -> "no lease" | {"ok" | "exists" | "deleting" | "deleting first" | "deleted" | "outdated" |
//                    "too long ago" | "no generation" | "full" | "sizes DATA METADATA"...}
constexpr char kUpdate[] = R"lua(
local life = LifeOf(ARGV[2])
if not life then return 'no lease' end

-- The first write of an announcement. Returns false where the server is out of memory.
local function Enter(...)
  local result = redis.pcall('HMSET', ...)
  if not result.err then return true end
  if string.find(result.err, 'OOM', 1, true) then return false end
  error(result.err)
end

-- Sees to it that the id has no other generation, or returns why it keeps it.
local function MakeFree(hex, known, deletions, established)
  -- Who says that it has another content has this one no more: only the word of that is still on
  -- its way.
  if known and call('HGET', Key('object', hex), life) == 'has' then
    TakeOut(hex, life)
    known = Live(hex)
  end
  local may_displace = established and (not known or IsOfThisReign(known.p))
  if known and not may_displace then return 'exists' end
  for _, deletion in pairs(deletions) do
    if not (may_displace and IsOfThisReign(deletion.provisional)) then return established and 'deleting first' or 'deleting' end
  end
  if known then BeginDeletion(hex) end
end

-- Whether a generation that was accepted before may be announced yet, which has the better right to
-- the id.
local lacks, server
local function MayLack()
  if lacks == nil then lacks = Lacks() or false end
  return lacks
end

local function Announce(hex, g, data, metadata, standing, name)
  local is_new, established = standing == '0', standing == '1'
  if g == no_generation then return 'no generation' end
  local deletions = Deletions(hex)
  if deletions[g] then
    GoOnWithoutMemory()
    AddToDeletion(hex, g, deletions[g].provisional, life)
    return 'deleted'
  end
  if IsBuried(hex, g) then return 'deleted' end
  local object, named = Key('object', hex), name ~= '' and {'n', name} or {}
  local known = Live(hex)
  if not (known and known.g == g) then
    if established and IsOutdated(ARGV[2]) then return 'outdated' end
    if MayHaveForgottenOneAfter(ARGV[3]) then return 'too long ago' end
    local why_not = MakeFree(hex, known, deletions, established)
    if why_not then return why_not end
    server = server or Get(Key('server')) or ''
    local fresh = is_new and server or ''
    local provisional = not established and MayLack() and server or ''
    if not Enter(object, 'g', g, 'd', data, 'm', metadata, 'f', fresh, 'p', provisional, life, 'has', unpack(named)) then
      return 'full'
    end
  else
    if known.d ~= data or known.m ~= metadata then return 'sizes ' .. known.d .. ' ' .. known.m end
    if not Enter(object, life, 'has', unpack(named)) then return 'full' end
  end
  call('SADD', Key('held', life), hex)
  call('PUBLISH', Key('announced', hex), '')
  return 'ok'
end

local function Withdraw(hex, g)
  local known = call('HMGET', Key('object', hex), 'g', life)
  if known[1] == g or (g == no_generation and known[2] == 'coming') then TakeOut(hex, life) end
  Confirm(hex, g, life)
  return 'ok'
end

local said = {}
for i = 4, #ARGV, 7 do
  local hex, g = ARGV[i + 1], ARGV[i + 2]
  if ARGV[i] == 'announce' then
    table.insert(said, Announce(hex, g, ARGV[i + 3], ARGV[i + 4], ARGV[i + 5], ARGV[i + 6]))
  else
    table.insert(said, Withdraw(hex, g))
  end
end
return said
)lua";

// object in hex, puller or "" -> "no lease" | {} | {generation, data size, metadata size, name or
// "", holder...}
constexpr char kLocate[] = R"lua(
local hex, puller = ARGV[2], ARGV[3]
local life = puller ~= '' and LifeOf(puller)
local object = Key('object', hex)
local known, lives = Read(object)
-- Where they are more than can be named, the next answer begins where this one ends.
local turn, looked, holders = tonumber(known.t or 0), 0, {}
while looked < #lives and #holders < most_named do
  local holder = lives[(turn + looked) % #lives + 1]
  if holder[2] == 'has' and StateOf(holder[1]) == 'alive' then
    table.insert(holders, (string.match(holder[1], '^%d+:(.+)$')))
  end
  looked = looked + 1
end
if #holders == 0 then return {} end
if puller ~= '' and not life then return 'no lease' end
if life or #lives > most_named then GoOnWithoutMemory() end
if #lives > most_named then call('HSET', object, 't', (turn + looked) % #lives) end
if life and call('HEXISTS', object, life) == 0 then
  call('HSET', object, life, 'coming')
  call('SADD', Key('held', life), hex)
end
return {known.g, known.d, known.m, known.n or '', unpack(holders)}
)lua";

// object in hex, generation or "", after, node that has dropped...
//   -> {"begun", microseconds left or ""} | {"node", name}: there may be a holder that the server
//      does not know | "unknown" | {generation, {holder...}, {silent...}}
constexpr char kDelete[] = R"lua(
local hex, g, after = ARGV[2], ARGV[3], ARGV[4]

-- Byte by byte: Lua compares as the server's locale does.
local function Less(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x < y end
  end
  return #a < #b
end
-- In order, and at most as many as may be named.
local function Insert(names, name)
  local place = #names + 1
  while place > 1 and Less(name, names[place - 1]) do place = place - 1 end
  if place <= most_named then table.insert(names, place, name) end
  names[most_named + 1] = nil
end

local known, deletions = Live(hex), Deletions(hex)
local is_live = known and (g == '' or g == known.g)
if g == '' and not is_live then
  for other in pairs(deletions) do
    if g == '' or other < g then g = other end
  end
end
if is_live or g == '' or not (deletions[g] or IsBuried(hex, g)) then
  if not (is_live and IsOfThisReign(known.f)) then
    if Get(Key('server')) ~= Run() then return {'begun', ''} end  -- nobody has met it
    local lacks = Lacks()
    if lacks then return lacks end
  end
  if is_live then
    g = known.g
    BeginDeletion(hex)
  elseif g == '' then
    return 'unknown'
  else
    Bury(hex, g)  -- its announcement may be on its way
  end
end
for i = 5, #ARGV do
  local life = LifeOf(ARGV[i])
  if life then Confirm(hex, g, life) end
end

-- The id is free when whatever had it is deleted.
deletions = Deletions(hex)
if not deletions[g] and next(deletions) then
  g, after = next(deletions), ''
  for other in pairs(deletions) do
    if other < g then g = other end
  end
end
local holders, silent = {}, {}
for _, life in ipairs(deletions[g] and deletions[g].lives or {}) do
  local name = string.match(life, '^%d+:(.+)$')
  if StateOf(life) == 'silent' then
    Insert(silent, name)
  elseif Less(after, name) then
    Insert(holders, name)
  end
end
return {g, holders, silent}
)lua";

// node, then for each version: object in hex, generation
//   -> "no lease" | {place of one that it is not known to hold...}
constexpr char kVerify[] = R"lua(
local life = LifeOf(ARGV[2])
if not life then return 'no lease' end
local lost = {}
for i = 3, #ARGV, 2 do
  local known = call('HMGET', Key('object', ARGV[i]), 'g', life)
  if known[1] ~= ARGV[i + 1] or known[2] ~= 'has' or call('SISMEMBER', Key('held', life), ARGV[i]) == 0 then
    table.insert(lost, (i - 3) / 2)
  end
end
return lost
)lua";

// node, cursor: "" | "EPOCH:NUMBER", how many
//   -> "no lease" | {cursor or "", "HEX:GENERATION"...}
constexpr char kHeld[] = R"lua(
local life = LifeOf(ARGV[2])
if not life then return 'no lease' end
-- A place in what another life held is none in this one's.
local epoch = string.match(life, '^%d+')
local from, at = string.match(ARGV[3], '^(%d+):(%d+)$')
if from ~= epoch then at = '0' end
local page = call('SSCAN', Key('held', life), at, 'COUNT', ARGV[4])
local held = {page[1] ~= '0' and epoch .. ':' .. page[1] or ''}
for _, hex in ipairs(page[2]) do
  local known = call('HMGET', Key('object', hex), 'g', life)
  if known[1] and known[2] then table.insert(held, hex .. ':' .. known[1]) end
end
return held
)lua";

// -> {{id, "alive" | "silent", ms since it joined or renewed its lease, incarnation, engines,
//      device, capacity}...}
constexpr char kRoster[] = R"lua(
-- The life that has the name now; nothing of another, and of one that is gone.
local function Entry(life)
  local epoch, id = string.match(life, '^(%d+):(.+)$')
  local state = StateOf(life)
  if state == 'gone' then return nil end
  local node = Key('node', id)
  local known = call('HMGET', node, 'epoch', 'hold', 'incarnation', 'engines', 'device', 'capacity')
  if known[1] ~= epoch then return nil end
  local hold = tonumber(known[2] or '')
  local unheard = hold and math.max(0, hold - call('PTTL', node)) or 0
  return {id, state, unheard, unpack(known, 3)}
end

local roster = {}
for _, life in ipairs(call('SMEMBERS', Key('lives'))) do
  local entry = IfOurs(Entry, life)
  if entry then table.insert(roster, entry) end
end
return roster
)lua";

}  // namespace tokamak::directory::redis
