import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { waitFor } from '@atoll/kit/wait'
import { print } from './acknowledged-state.ts'
import { killSandbox, post, sandboxIn, timeout } from './work.ts'
import type { Scene, Work } from './work.ts'

export async function build(scene: Scene): Promise<Work> {
  const { name, mark, templateId, start } = await requestBuild(scene)
  return {
    request: start,
    status: 200,
    enter: () => void scene.acknowledged.templates.set(name, { templateId, mark }),
    check: () => checkTemplate(scene, name),
  }
}

export async function deleteTemplate(scene: Scene): Promise<Work> {
  const { templates, deleted } = scene.acknowledged
  const [known] = templates.keys()
  const name = known ?? (await buildTemplate(scene))
  const { templateId = '' } = templates.get(name) ?? {}
  return {
    request: () => scene.cloud.platform('DELETE', `/templates/${templateId}`),
    status: 204,
    enter() {
      templates.delete(name)
      deleted.add(templateId)
    },
    check: () => checkNoTemplate(scene, name),
  }
}

export async function checkNoTemplate(scene: Scene, id: string): Promise<void> {
  const { status, text } = await post(scene, '/v2/sandboxes', { templateID: id, timeout })
  assert.equal(status, 404, text)
}

async function checkTemplate(scene: Scene, name: string): Promise<void> {
  const created = await post(scene, '/v2/sandboxes', { templateID: name, timeout })
  assert.equal(created.status, 201, created.text)
  const sandbox = sandboxIn(created)
  const { mark } =
    scene.acknowledged.templates.get(name) ?? assert.fail(`${name} is not in the acknowledged`)
  assert.equal(await print(scene.cloud, sandbox, 'cat /mark'), `${mark}\n`)
  await killSandbox(scene, sandbox)
}

async function buildTemplate(scene: Scene): Promise<string> {
  const { name, mark, templateId, start } = await requestBuild(scene)
  await start()
  scene.acknowledged.templates.set(name, { templateId, mark })
  return name
}

async function requestBuild(scene: Scene) {
  const mark = randomUUID()
  const name = `t-${mark}`
  const requested = await post(scene, '/v3/templates', { name, cpuCount: 1, memoryMB: 256 })
  assert.equal(requested.status, 202, requested.text)
  const { templateID, buildID } = Object(requested.json)
  const path = `templates/${templateID}/builds/${buildID}`
  const steps = [{ type: 'RUN', args: [`echo ${mark} > /mark`, 'root'] }]
  return {
    name,
    mark,
    templateId: String(templateID),
    async start() {
      const started = await post(scene, `/v2/${path}`, { fromTemplate: 'base', steps })
      assert.equal(started.status, 202, started.text)
      return waitFor(
        'the build to be ready',
        async () => {
          const reply = await scene.cloud.platform('GET', `/${path}/status`)
          const { status } = Object(reply.json)
          assert.notEqual(status, 'error', reply.text)
          return status === 'ready' && reply
        },
        { timeoutMs: 240_000, intervalMs: 20 },
      )
    },
  }
}
