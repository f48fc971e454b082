// The directory's steps as Lua scripts: the server runs each as one atomic step. docs/directory.md draws the keys.
//
// ARGV[1] is the prefix of all keys. Numbers travel as decimal text and are compared as text (Lua's are not exact beyond 2^53):
// sizes only for equality, incarnations with leading zeros. Needs Redis 5 or later, not a cluster.
#pragma once

namespace tokamak::directory::redis {

// What all scripts know. End(id): the life of node `id` is over. DropIfUnheld(object): forgets an object without holders.
constexpr char kCommon[] = R"lua(
local prefix = ARGV[1]
local function Key(...) return prefix .. ':' .. table.concat({...}, ':') end
local function EpochOf(id) return redis.call('HGET', Key('node', id), 'epoch') end
local function End(id)
  local epoch = redis.call('HGET', Key('epochs'), id)
  if epoch then
    redis.call('SADD', Key('ended'), id .. ' ' .. epoch)
    redis.call('HDEL', Key('epochs'), id)
  end
  redis.call('SREM', Key('nodes'), id)
end
local function DropIfUnheld(object)
  if redis.call('HLEN', object) <= 2 then redis.call('DEL', object) end
end
)lua";

// id, incarnation, lease in ms, engines, device, capacity, most nodes, nodes to look at, objects to clean
//   -> "entered" | "renewed" | "later" (a later life is known) | "full"
constexpr char kJoin[] = R"lua(
local id, incarnation, lease = ARGV[2], ARGV[3], ARGV[4]
local node = Key('node', id)

local function EndExpired(ids)
  for _, other in ipairs(ids) do
    if redis.call('EXISTS', Key('node', other)) == 0 then End(other) end
  end
end

-- A bounded step of cleaning after lives that have ended.
local function Clean()
  EndExpired(redis.call('SRANDMEMBER', Key('nodes'), ARGV[9]))
  local life = redis.call('SRANDMEMBER', Key('ended'))
  if not life then return end
  local gone, epoch = string.match(life, '^(%S+) (%d+)$')
  local held = Key('held', gone, epoch)
  for _, hex in ipairs(redis.call('SPOP', held, ARGV[10])) do
    local object = Key('object', hex)
    if redis.call('HGET', object, 'h:' .. gone) == epoch then
      redis.call('HDEL', object, 'h:' .. gone)
      DropIfUnheld(object)
    end
  end
  if redis.call('EXISTS', held) == 0 then redis.call('SREM', Key('ended'), life) end
end

local function Full()
  local most = tonumber(ARGV[8])
  if redis.call('SCARD', Key('nodes')) < most then return false end
  EndExpired(redis.call('SMEMBERS', Key('nodes')))
  return redis.call('SCARD', Key('nodes')) >= most
end

local known = redis.call('HMGET', node, 'incarnation', 'epoch')
if known[1] and known[1] > incarnation then return 'later' end
local result, epoch = 'renewed', known[2]
if known[1] ~= incarnation then
  End(id)
  if Full() then return 'full' end
  result, epoch = 'entered', redis.call('INCR', Key('epoch'))
  redis.call('HSET', Key('epochs'), id, epoch)
  redis.call('SADD', Key('nodes'), id)
end
redis.call('HMSET', node, 'incarnation', incarnation, 'epoch', epoch, 'engines', ARGV[5], 'device', ARGV[6],
           'capacity', ARGV[7])
redis.call('PEXPIRE', node, lease)
Clean()
return result
)lua";

// id, incarnation -> nothing
constexpr char kLeave[] = R"lua(
local id, incarnation = ARGV[2], ARGV[3]
local node = Key('node', id)
if redis.call('HGET', node, 'incarnation') == incarnation then
  redis.call('DEL', node)
  End(id)
end
)lua";

// object in hex, data size, metadata size, node, most holders
//   -> {"announced"} | {"no lease"} | {"other sizes", data size, metadata size}
constexpr char kAnnounce[] = R"lua(
local hex, data, metadata, id = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local epoch = EpochOf(id)
if not epoch then return {'no lease'} end
local object = Key('object', hex)
local fields = redis.call('HGETALL', object)
local alive, ours, known = 0, false, {}
for i = 1, #fields, 2 do
  local field, value = fields[i], fields[i + 1]
  if string.sub(field, 1, 2) ~= 'h:' then
    known[field] = value
  elseif EpochOf(string.sub(field, 3)) == value then
    alive = alive + 1
    ours = ours or field == 'h:' .. id
  else
    redis.call('HDEL', object, field)
  end
end
if alive > 0 and (known.d ~= data or known.m ~= metadata) then return {'other sizes', known.d, known.m} end
if alive == 0 then redis.call('HMSET', object, 'd', data, 'm', metadata) end
if not ours and alive < tonumber(ARGV[6]) then
  redis.call('HSET', object, 'h:' .. id, epoch)
  redis.call('SADD', Key('held', id, epoch), hex)
end
redis.call('PUBLISH', Key('announced', hex), '')
return {'announced'}
)lua";

// object in hex, node -> nothing
constexpr char kWithdraw[] = R"lua(
local hex, id = ARGV[2], ARGV[3]
local object = Key('object', hex)
local epoch = redis.call('HGET', object, 'h:' .. id)
if epoch then
  redis.call('HDEL', object, 'h:' .. id)
  redis.call('SREM', Key('held', id, epoch), hex)
  DropIfUnheld(object)
end
)lua";

// object in hex -> {} | {data size, metadata size, holder...}, the holders alive only
constexpr char kLocate[] = R"lua(
local fields = redis.call('HGETALL', Key('object', ARGV[2]))
local known, holders = {}, {}
for i = 1, #fields, 2 do
  local field, value = fields[i], fields[i + 1]
  if string.sub(field, 1, 2) ~= 'h:' then
    known[field] = value
  elseif EpochOf(string.sub(field, 3)) == value then
    table.insert(holders, string.sub(field, 3))
  end
end
if #holders == 0 then return {} end
return {known.d, known.m, unpack(holders)}
)lua";

// -> {{id, incarnation, engines, device, capacity}...}, those alive
constexpr char kNodes[] = R"lua(
local nodes = {}
for _, id in ipairs(redis.call('SMEMBERS', Key('nodes'))) do
  local known = redis.call('HMGET', Key('node', id), 'incarnation', 'engines', 'device', 'capacity')
  if known[1] then table.insert(nodes, {id, unpack(known)}) end
end
return nodes
)lua";

}  // namespace tokamak::directory::redis
