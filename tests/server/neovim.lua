-- A real editor: opens train.py, waits for dtlint's diagnostics, asks for a hover and for code actions, and prints what came.
-- Run by test_neovim.py as: nvim --headless -u NONE -l neovim.lua, or with -c "luafile neovim.lua"; PYTHON names the interpreter.
local function out(key, value)
  io.stdout:write(key .. ": " .. vim.fn.json_encode(value) .. "\n")
end

local root = vim.fn.getcwd()
vim.cmd("edit train.py")
vim.bo.filetype = "python"
local client = vim.lsp.start_client({
  name = "dtlint",
  cmd = { vim.env.PYTHON, "-m", "dtlint", "server" },
  root_dir = root,
  settings = { dtlint = { preview = false } },
})
vim.lsp.buf_attach_client(0, client)

local came = vim.wait(60000, function()
  return #vim.diagnostic.get(0) > 0
end, 20)
out("came", came)
local found = {}
for _, one in ipairs(vim.diagnostic.get(0)) do
  table.insert(found, { one.code, one.lnum, one.col, one.end_col })
end
out("diagnostics", found)

local where = { textDocument = { uri = vim.uri_from_bufnr(0) }, position = { line = 4, character = 1 } }
local hover = vim.lsp.buf_request_sync(0, "textDocument/hover", where, 60000)[client].result
out("hover", vim.split(hover.contents.value, "\n")[1])

-- an edit as a person makes it, and its end: the finding goes
vim.api.nvim_buf_set_text(0, 4, 41, 4, 43, { "32" })
out("gone", vim.wait(60000, function()
  return #vim.diagnostic.get(0) == 0
end, 20))

vim.lsp.stop_client(client)
vim.cmd("qall!")
