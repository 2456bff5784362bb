--- What the user is told: one sentence each.
local M = {}

local TITLE = { title = 'dap-agent' }

---@param text string
---@param level? integer of vim.log.levels
local function say(text, level)
  local function now()
    vim.notify('dap-agent: ' .. text, level or vim.log.levels.INFO, TITLE)
  end
  if vim.in_fast_event() then
    vim.schedule(now)
  else
    now()
  end
end

---@param text string
function M.info(text)
  say(text, vim.log.levels.INFO)
end

---@param text string
function M.warn(text)
  say(text, vim.log.levels.WARN)
end

---@param text string
function M.error(text)
  say(text, vim.log.levels.ERROR)
end

--- The sentence of an error that nvim-dap hands to a callback: the adapter's own words.
---@param err table|string
---@return string
function M.sentence(err)
  if type(err) == 'table' then
    -- the protocol's ErrorResponse: body.error.format, and a short message beside it
    local given = vim.tbl_get(err, 'body', 'error', 'format') or err.message
    return type(given) == 'string' and given or vim.inspect(err)
  end
  return tostring(err)
end

return M
