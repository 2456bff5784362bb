--- What the user can have done: each answers at once, and tells how it went in one sentence.
local M = {}

local events = require('dap_agent.events')
local say = require('dap_agent.say')

local NO_SESSION = 'there is no debug session with dap-agent in it: start one with nvim-dap, then :DapAgent works.'
local EXPLAIN = 'Explain this exception: what happened, where the wrong value comes from, and which values prove it.'

---@type table<string, true> ids of the questions whose answers get a window
local asked = {}

--- Send `dapAgent/NAME`; a refusal is told to the user.
---@param name string
---@param arguments table?
---@param done fun(body: table, known: dap_agent.Known)
local function request(name, arguments, done)
  local known = events.current()
  if not known then
    return say.warn(NO_SESSION)
  end
  known.session:request('dapAgent/' .. name, arguments or vim.empty_dict(), function(err, body)
    if err then
      return say.error(say.sentence(err))
    end
    done(body or {}, known)
  end)
end

---@param instructions? string
function M.autodebug(instructions)
  local given = instructions and vim.trim(instructions) ~= ''
  request('autodebug', given and { instructions = instructions } or nil, function(body)
    say.info(('%s looks for a fix; :DapAgent cancel ends that.'):format(body.model))
  end)
end

---@param question string
function M.ask(question)
  if vim.trim(question or '') == '' then
    return say.warn('there is no question: :DapAgent ask QUESTION.')
  end
  request('ask', { text = question }, function(body, known)
    asked[body.id] = true
    require('dap_agent.windows').answer(question, '...')
    if known.ends[body.id] then
      M.ended(known, known.ends[body.id])
    end
  end)
end

function M.explain()
  M.ask(EXPLAIN)
end

function M.cancel()
  request('cancel', nil, function(body)
    if not body.id or body.id == vim.NIL then
      say.info('nothing runs that could be cancelled.')
    end
  end)
end

function M.status()
  request('status', nil, function(body)
    local words = { 'the program is ' .. body.program }
    local function add(text, value)
      if value and value ~= vim.NIL then
        words[#words + 1] = text:format(value)
      end
    end
    add('exception: %s', type(body.exception) == 'string' and vim.split(body.exception, '\n')[1] or nil)
    add('model: %s', body.model)
    if type(body.working) == 'table' then
      add('%s runs', body.working.task)
    end
    if type(body.proposal) == 'table' then
      add(body.proposal.applied and 'fix applied: %s' or 'fix ready: %s', body.proposal.title)
    end
    add('cost: $%.2f', body.cost)
    say.info(table.concat(words, '; ') .. '.')
  end)
end

--- Show all that is known of the newest exception, of a session that is over, too.
function M.report()
  if not require('dap_agent.lsp').execute('dapAgent.showReport') then
    say.warn('the report comes from the language server, which runs once a Python file is open (and not with lsp = false).')
  end
end

--- The newest fix of the session that is meant.
local function proposal()
  local known = events.current()
  if not known then
    say.warn(NO_SESSION)
  elseif not known.told.proposal then
    say.warn('there is no fix yet: :DapAgent autodebug looks for one.')
  else
    return known.told.proposal
  end
end

function M.diff()
  local fix = proposal()
  if fix then
    require('dap_agent.windows').diff(fix)
  end
end

--- The buffer of a file if it is loaded.
local function buffer_of(path)
  local buffer = vim.fn.bufnr(('^%s$'):format(vim.fn.escape(path, '\\*?[]{},^$~')))
  return buffer > 0 and vim.api.nvim_buf_is_loaded(buffer) and buffer or nil
end

--- Have buffers show what their files hold now; those with changes of the user's are left to Neovim's own question.
local function reread(paths)
  for _, path in ipairs(paths) do
    local buffer = buffer_of(path)
    if buffer then
      local before = vim.bo[buffer].autoread
      vim.bo[buffer].autoread = true
      vim.cmd.checktime(buffer)
      vim.bo[buffer].autoread = before
    end
  end
end

---@param options? { unproved: boolean }
function M.apply(options)
  vim.validate('options', options, 'table', true)
  local unproved = (options or {}).unproved == true
  local fix = proposal()
  if not fix then
    return
  end
  for _, file in ipairs(fix.files) do
    local buffer = buffer_of(file.path)
    if buffer and vim.bo[buffer].modified then
      local name = vim.fn.fnamemodify(file.path, ':~:.')
      local way = require('dap_agent.lsp').client() and ', or take the fix as a code action, which keeps them' or ''
      return say.error(
        ('%s has changes that are not saved, so the fix was not written: save it (:write) first%s.'):format(name, way)
      )
    end
  end
  if not fix.proved and not unproved then
    local verdict = type(fix.verdict) == 'table' and fix.verdict.kind or 'not tried'
    return say.warn(
      ('the fix is not proved (%s), so it was not written: :DapAgent diff shows it, :DapAgent! apply writes it.'):format(verdict)
    )
  end
  request('apply', { id = fix.id, unproved = unproved }, function(body, known)
    known.told.applied = body.id
    reread(body.files)
    local names = vim.tbl_map(function(path)
      return vim.fn.fnamemodify(path, ':~:.')
    end, body.files)
    local live = type(body.reload) == 'table' and ' ' .. body.reload.summary or ''
    say.info(
      ('applied to %s.%s :DapAgent restart_frame or :DapAgent restart runs it, :DapAgent undo takes it back.'):format(
        table.concat(names, ', '),
        live
      )
    )
  end)
end

function M.undo()
  request('undo', nil, function(body, known)
    known.told.applied = nil
    reread(body.restored)
    reread(body.removed)
    say.info(('taken back: %s.'):format(body.title))
  end)
end

--- Run what needs nvim-dap alone.
local function with_dap(name)
  if not events.current() then
    return say.warn(NO_SESSION)
  end
  require('dap')[name]()
end

function M.restart_frame()
  with_dap('restart_frame')
end

function M.restart()
  with_dap('restart')
end

--- An investigation is over.
---@param known dap_agent.Known
---@param body table of the last `dapAgentProgress`
function M.ended(known, body)
  if asked[body.id] then
    asked[body.id] = nil
    require('dap_agent.windows').answer(nil, body.text)
  elseif body.task == 'autodebug' and not require('dap_agent.lsp').client() then -- else the server tells it
    local fix = known.told.proposal
    if body.status == 'proposed' and fix and fix.id == body.id then
      local verdict = fix.proved and 'proved' or (type(fix.verdict) == 'table' and fix.verdict.kind) or 'not tried'
      say.info(('fix ready: %s (%s). :DapAgent diff shows it, :DapAgent apply writes it.'):format(fix.title, verdict))
    else
      say.warn(('no fix: %s'):format(body.text ~= '' and body.text or body.status))
    end
  end
end

return M
