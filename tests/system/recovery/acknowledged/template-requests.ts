import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { waitFor } from '@atoll/kit/wait'
import { runScript } from './acknowledged-state.ts'
import { killSandbox, post, sandboxOf, timeout } from './acknowledged-request.ts'
import type { RequestContext, AcknowledgedRequest } from './acknowledged-request.ts'

export async function build(context: RequestContext): Promise<AcknowledgedRequest> {
  const { name, mark, templateId, start } = await requestBuild(context)
  return {
    send: start,
    status: 200,
    record: () => void context.acknowledged.templates.set(name, { templateId, mark }),
    check: () => checkTemplate(context, name),
  }
}

export async function deleteTemplate(context: RequestContext): Promise<AcknowledgedRequest> {
  const { templates, deleted } = context.acknowledged
  const [existingName] = templates.keys()
  const name = existingName ?? (await buildTemplate(context))
  const { templateId = '' } = templates.get(name) ?? {}
  return {
    send: () => context.cloud.platform('DELETE', `/templates/${templateId}`),
    status: 204,
    record() {
      templates.delete(name)
      deleted.add(templateId)
    },
    check: () => checkNoTemplate(context, name),
  }
}

export async function checkNoTemplate(context: RequestContext, id: string): Promise<void> {
  const { status, text } = await post(context, '/v2/sandboxes', { templateID: id, timeout })
  assert.equal(status, 404, text)
}

async function checkTemplate(context: RequestContext, name: string): Promise<void> {
  const createReply = await post(context, '/v2/sandboxes', { templateID: name, timeout })
  assert.equal(createReply.status, 201, createReply.text)
  const sandbox = sandboxOf(createReply)
  const { mark } =
    context.acknowledged.templates.get(name) ?? assert.fail(`template ${name} is not acknowledged`)
  assert.equal(await runScript(context.cloud, sandbox, 'cat /mark'), `${mark}\n`)
  await killSandbox(context, sandbox)
}

async function buildTemplate(context: RequestContext): Promise<string> {
  const { name, mark, templateId, start } = await requestBuild(context)
  await start()
  context.acknowledged.templates.set(name, { templateId, mark })
  return name
}

async function requestBuild(context: RequestContext) {
  const mark = randomUUID()
  const name = `t-${mark}`
  const buildReply = await post(context, '/v3/templates', { name, cpuCount: 1, memoryMB: 256 })
  assert.equal(buildReply.status, 202, buildReply.text)
  const { templateID, buildID } = Object(buildReply.json)
  const path = `templates/${templateID}/builds/${buildID}`
  const steps = [{ type: 'RUN', args: [`echo ${mark} > /mark`, 'root'] }]
  return {
    name,
    mark,
    templateId: String(templateID),
    async start() {
      const startReply = await post(context, `/v2/${path}`, { fromTemplate: 'base', steps })
      assert.equal(startReply.status, 202, startReply.text)
      return waitFor(
        'the build to be ready',
        async () => {
          const reply = await context.cloud.platform('GET', `/${path}/status`)
          const { status } = Object(reply.json)
          assert.notEqual(status, 'error', reply.text)
          return status === 'ready' && reply
        },
        { timeoutMs: 240_000, intervalMs: 20 },
      )
    },
  }
}
