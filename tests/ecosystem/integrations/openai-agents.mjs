/**
 * Agent of @openai/agents with the sandbox client of @openai/agents-extensions. Only the model is scripted: it calls
 * the tools that the packages offer to a model.
 */
import assert from 'node:assert/strict'
import { Usage, run, setTracingDisabled } from '@openai/agents'
import { Manifest, SandboxAgent } from '@openai/agents/sandbox'
import { E2BSandboxClient } from '@openai/agents-extensions/sandbox/e2b'
import { fetchWhenListening } from './fetch-when-listening.mjs'

setTracingDisabled(true)
const manifest = new Manifest({
  entries: { 'README.md': { type: 'file', content: 'The answer is 42.\n' } },
})
const client = new E2BSandboxClient({ timeout: 600, exposedPorts: [8000] })

await runAgent()
await useSession()
process.stdout.write('done')
process.exit(0)

async function runAgent() {
  const seen = []
  const agent = new SandboxAgent({
    name: 'Reader',
    instructions: 'Read the README and answer.',
    defaultManifest: manifest,
    model: scriptedModel(seen),
  })
  const result = await run(agent, 'What is the answer?', { sandbox: { client } })
  assert.equal(result.finalOutput, 'finished')
  assert.match(seen.join('\n'), /The answer is 42\./)
}

function scriptedModel(seen) {
  return {
    async getResponse({ input }) {
      const results = input.filter(({ type }) => type === 'function_call_result')
      seen.push(...results.map(({ output }) => JSON.stringify(output)))
      return { usage: new Usage(), output: [results.length === 0 ? toolCall() : finalMessage()] }
    },
    async *getStreamedResponse() {},
  }
}

function toolCall() {
  const args = JSON.stringify({ cmd: 'cat README.md' })
  return {
    type: 'function_call',
    callId: '1',
    name: 'exec_command',
    status: 'completed',
    arguments: args,
  }
}

function finalMessage() {
  const content = [{ type: 'output_text', text: 'finished' }]
  return { type: 'message', role: 'assistant', status: 'completed', content }
}

async function useSession() {
  const session = await client.create(manifest)
  assert.match(await session.execCommand({ cmd: 'echo $((6 * 7)); exit 3' }), /code 3[^]*42/)
  const editor = session.createEditor()
  await editor.createFile({ type: 'create_file', path: 'site/index.html', diff: '+served' })
  assert.equal(text(await session.readFile({ path: 'site/index.html' })).trim(), 'served')
  assert.equal(await session.pathExists('absent'), false)

  await session.execCommand({ cmd: 'nohup python3 -m http.server 8000 -d site >/dev/null 2>&1 &' })
  // The package supposes TLS only for names without a port, which installations on port 443 have.
  const { host, port } = await session.resolveExposedPort(8000)
  const page = await fetchWhenListening(`https://${host}:${port}/index.html`)
  assert.equal(page.trim(), 'served')

  const saved = await client.serializeSessionState(session.state)
  const again = await client.resume(await client.deserializeSessionState(saved))
  assert.equal(again.state.sandboxId, session.state.sandboxId)
  assert.equal(text(await again.readFile({ path: 'README.md' })), 'The answer is 42.\n')
  const archive = await again.persistWorkspace()
  await again.delete()
  assert.equal(await session.running(), false)

  const copy = await client.create(new Manifest({}))
  await copy.hydrateWorkspace(archive)
  assert.equal(text(await copy.readFile({ path: 'site/index.html' })).trim(), 'served')
  await copy.delete()
}

function text(bytes) {
  return typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString()
}
